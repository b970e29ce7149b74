// Runs the script of the service's page: two pictures are dropped, and the answer about the first
// one comes behind that about the second, or fails then, or comes before.
//   node page_asks.js PAGE.html
const fs = require("fs")
const script = fs.readFileSync(process.argv[2], "utf8").match(/<script>([^]*)<\/script>/)[1]

// As much of a document as the script uses. `cells` is what the table shows.
function open() {
  const cells = [], requests = [], nodes = {}
  const node = () => ({
    textContent: "", className: "", append() {}, replaceChildren() { cells.length = 0 },
    insertRow: () => ({ insertCell: () => { const cell = node(); cells.push(cell); return cell } }),
  })
  const document = { getElementById: id => nodes[id] ||= node(), createElement: node }
  const fetch = (url, { body, signal }) => new Promise((resolve, reject) => {
    signal?.addEventListener("abort", () => reject(new Error("aborted")))
    requests.push({ body, resolve, reject })
  })
  const URL = { createObjectURL: file => "blob:" + file, revokeObjectURL() {} }
  new Function("document", "fetch", "URL", script)(document, fetch, URL)
  const drop = file => document.ondrop({ preventDefault() {}, dataTransfer: { files: [file] } })
  const shown = () => [nodes.shown.src, nodes.error.textContent, cells.map(c => c.textContent).join("")]
  return { drop, requests, shown }
}

const settle = () => new Promise(resolve => setImmediate(resolve))

function answer(request, name) {
  request.resolve({ ok: true, json: async () => ({ predictions: [{ top: [{ class: name, score: 0.5 }] }] }) })
}

function refuse(request, why) {
  request.resolve({ ok: false, json: async () => ({ error: why }) })
}

function check(name, got, wanted) {
  if (JSON.stringify(got) === JSON.stringify(wanted)) return
  console.log(`${name}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`)
  process.exitCode = 1
}

async function ask(name, order, wanted) {
  const page = open()
  page.drop("slow")
  page.drop("fast")
  check(name + ": requests", page.requests.map(r => r.body), ["slow", "fast"])
  for (const step of order) {
    step(page.requests)
    await settle()
  }
  check(name, page.shown(), wanted)
}

async function main() {
  const slow = ([first]) => answer(first, "a slow one"), fast = ([, second]) => answer(second, "a fast one")
  const right = ["blob:fast", "", "a fast one0.500"]
  await ask("in order", [slow, fast], right)
  await ask("out of order", [fast, slow], right)
  await ask("the older one alone", [slow], ["blob:fast", "", ""])
  await ask("the older one fails", [([first]) => first.reject(new Error("no network"))], ["blob:fast", "", ""])
  await ask("the older one is refused", [fast, ([first]) => refuse(first, "no picture")], right)
  await ask("the newer one is refused", [([, second]) => refuse(second, "no picture"), slow],
    ["blob:fast", "no picture", ""])
}

main()
