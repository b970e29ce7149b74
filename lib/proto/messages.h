// The whole wire on one page: its version, its numbered messages, their fields and
// limits. Structs, encoding, decoding, names and adam-protocol(5) all follow from
// these tables, so that none can disagree with another.
//
// A frame is a header of PROTO_FRAME bytes, a body and a payload:
//
//   offset  length  content
//        0       4  "adam"
//        4       2  version of the wire
//        6       2  number of the message
//        8       8  request: the asker's number, which the answer repeats; 0: no answer wanted
//       16       4  length B of the body
//       20       4  length P of the payload
//       24       B  body: the message's fields, in order, without gaps
//   24 + B       P  payload: numbers in bulk (32-bit floats unless the message says otherwise),
//                   never copied on the way from the wire to where they are used
//
// All numbers are little-endian. This header is the same in every version, so that a
// frame of an unknown version, or an unknown message, can be answered and passed over.
//
// Payloads have no checksum of their own: any would cost more than 4% of a transfer. Links and
// TCP have their sums, TLS authenticates every byte, and updates with a number that is not finite
// are refused. Files, which keep damage, have CRCs.
//
// A request whose first field is its sender's session is answered only over a connection of
// that session: the one that the hello named, or that came since by `joined`. Any other is
// refused (wrong session), so that nobody pushes, leases or leaves as another.
//
// Numbers of answers have the bit PROTO_ANSWER. Every request can be answered by
// `refused` instead. The group 0x06, replication, is spoken on the replication addresses and on no
// other (Adam 3.3.4), and the group 0x07 between the workers of one replica (model/cut.h).
#ifndef ADAM_PROTO_MESSAGES_H
#define ADAM_PROTO_MESSAGES_H

#define PROTO_VERSION 13
#define PROTO_FRAME 24
#define PROTO_ANSWER 0x8000

// Limits. A peer that was not welcomed yet may send PROTO_STRANGER_MAX bytes of body
// and no payload. A payload fills at most the largest pooled buffer (Adam 3.3.1:
// "buffers are allocated from pools of specified size that vary in powers of 2 from
// 4KB all the way to 32MB").
#define PROTO_STRANGER_MAX 4096
#define PROTO_BODY_MAX (1 << 20)
#define PROTO_PAYLOAD_MAX (32 << 20)
#define PROTO_NAME_MAX 64
#define PROTO_ADDRESS_MAX 256
#define PROTO_REASON_MAX 1024
#define PROTO_PIECES_MAX 4096
#define PROTO_HELD_MAX 65536
#define PROTO_LEASES_MAX 65536

// "The model parameters are divided into 1 MB sized shards" (Adam 3.3.1).
#define PROTO_SHARD_FLOATS (1 << 18)
#define PROTO_SHARD_BLOCKS 64 // of a shard, each a bit of a mask; the last shard has fewer
#define PROTO_BLOCK_FLOATS (PROTO_SHARD_FLOATS / PROTO_SHARD_BLOCKS)

// Roles: R(number, NAME, name).
#define PROTO_ROLES(R)                                                                             \
    R(0, CONTROLLER, "controller")                                                                 \
    R(1, PARAMETER_SERVER, "parameter server")                                                     \
    R(2, DATA_SERVER, "data server")                                                               \
    R(3, WORKER, "worker")                                                                         \
    R(4, EVALUATOR, "evaluator")                                                                   \
    R(5, ADMINISTRATOR, "administrator")

// What a member is doing: S(number, NAME, name).
#define PROTO_STATES(S)                                                                            \
    S(0, STARTING, "starting")                                                                     \
    S(1, WORKING, "working")                                                                       \
    S(2, WAITING, "waiting")                                                                       \
    S(3, SAVING, "saving")                                                                         \
    S(4, LEAVING, "leaving")                                                                       \
    S(5, GONE, "gone")

// What a controller wants of a member: O(number, NAME, name).
#define PROTO_ORDERS(O)                                                                            \
    O(0, NOTHING, "nothing")                                                                       \
    O(1, SAVE, "save")                                                                             \
    O(2, STOP, "stop")                                                                             \
    O(3, LEAVE, "leave")

// What a push holds: U(number, NAME, name).
#define PROTO_UPDATES(U)                                                                           \
    U(0, GRADIENT, "gradient")                                                                     \
    U(1, DELTA, "delta")

// What of a parameter is meant: W(number, NAME, name).
#define PROTO_QUANTITIES(W)                                                                        \
    W(0, WEIGHT, "weight")                                                                         \
    W(1, STATE, "state")                                                                           \
    W(2, STATE2, "state2")                                                                         \
    W(3, STATE3, "state3")

// What a value of a picture is: V(number, NAME, name).
#define PROTO_VALUES(V)                                                                            \
    V(0, BYTE, "byte")                                                                             \
    V(1, FLOAT, "float")

// The steps of the Paxos register: P(number, NAME, name).
#define PROTO_PAXOS_STEPS(P)                                                                       \
    P(0, PREPARE, "prepare")                                                                       \
    P(1, PROMISE, "promise")                                                                       \
    P(2, ACCEPT, "accept")                                                                         \
    P(3, ACCEPTED, "accepted")                                                                     \
    P(4, REJECT, "reject")                                                                         \
    P(5, COMMIT, "commit")                                                                         \
    P(6, BLANK, "blank")                                                                           \
    P(7, REJOIN, "rejoin")                                                                         \
    P(8, ADMIT, "admit")                                                                           \
    P(9, WAS_BLANK, "was blank")

// What a parameter server proposes for a bucket: G(number, NAME, name).
#define PROTO_CHANGES(G)                                                                           \
    G(0, TAKE_OVER, "take over")                                                                   \
    G(1, COMPLETE, "complete")                                                                     \
    G(2, DROP, "drop")

// Why a request is refused: C(number, NAME, name, what the asker should know).
#define PROTO_REFUSALS(C)                                                                          \
    C(1, VERSION, "unknown version", "detail: the version that is spoken here")                    \
    C(2, MESSAGE, "unknown message", "detail: its number")                                         \
    C(3, MALFORMED, "malformed message", "the body is not what the number says")                   \
    C(4, TOO_LARGE, "too large", "detail: the limit in bytes")                                     \
    C(5, STRANGER, "not welcomed yet", "a hello must come first")                                  \
    C(6, WRONG_RUN, "wrong run", "the peers are of different runs")                                \
    C(7, WRONG_MODEL, "wrong model", "detail: the hash of the model that is trained here")         \
    C(8, WRONG_ROLE, "wrong role", "this is not asked here, or not by that role")                  \
    C(9, WRONG_SESSION, "wrong session", "it has ended, or is not this connection's: join again")  \
    C(10, STALE_ROUTE, "stale route", "detail: the bucket's epoch; look up the routes again")      \
    C(11, NOT_HERE, "not here", "detail: the shard, lease or controller that is meant")            \
    C(12, WRONG_SHAPE, "wrong shape", "the payload or its pieces do not fit; detail: the piece")   \
    C(13, NOT_FINITE, "not finite", "or beyond 1e12; detail: the place of the first such number")  \
    C(14, TOO_STALE, "too stale", "detail: the staleness that is allowed; pull first")             \
    C(15, REPLAYED, "replayed", "too old to tell whether it was applied; detail: the newest")      \
    C(16, BUSY, "busy", "detail: milliseconds after which to ask again")                           \
    C(17, NOT_READY, "not ready",                                                                  \
      "there are no weights yet, or the epoch is about to end; detail: as of busy")                \
    C(18, EPOCH_OVER, "epoch over", "detail: the epoch that comes next; PROTO_NOWHERE: none does") \
    C(19, LEASE_OVER, "lease over", "its work was handed to another; detail: the lease")           \
    C(20, BAD_SETTING, "bad setting", "the text says which and why")                               \
    C(21, STOPPING, "stopping", "ask another, or end")                                             \
    C(22, STORAGE, "storage failed", "the text says where and why")                                \
    C(23, PEER_LOST, "peer lost", "the run cannot go on; the text names who vanished")             \
    C(24, NOT_LEADER, "not the leader",                                                            \
      "ask the next controller; the text names the leader's address")

// Fields: F(KIND, name, limit, meaning). KIND is U8, U16, U32, U64, F64, ID (16 bytes,
// compared and never read), TEXT or BYTES (a 32-bit length, then as many bytes). The
// limit is the greatest number, or the greatest length; 0 is the kind's own.
// Lists: L(record, name, greatest count, meaning): a 32-bit count, then the records.

// Records.

// A part of a shard, and of a payload: pieces lie in it in their order.
#define PROTO_PIECE(F, L)                                                                          \
    F(U32, shard, 0, "which: floats shard * 262144 and on of the parameters")                      \
    F(U32, offset, PROTO_SHARD_FLOATS, "first float within the shard")                             \
    F(U32, count, PROTO_SHARD_FLOATS, "floats")                                                    \
    F(U64, epoch, 0, "of the shard's bucket: lower ones than the server's are refused")            \
    F(U64, version, 0, "clock of the shard: how many updates were applied to it")

#define PROTO_SERVER(F, L)                                                                         \
    F(U32, member, 0, "number of the server")                                                      \
    F(TEXT, training, PROTO_ADDRESS_MAX, "its address for workers")                                \
    F(TEXT, replication, PROTO_ADDRESS_MAX, "its address for other parameter servers")             \
    F(TEXT, administration, PROTO_ADDRESS_MAX, "its address for controllers and people")

#define PROTO_BUCKET(F, L)                                                                         \
    F(U64, epoch, 0, "raised by every change of who holds it")                                     \
    F(U32, primary, 0, "member that serves it")                                                    \
    F(U32, second, 0, "member with a copy; PROTO_NOBODY: none")                                    \
    F(U32, third, 0, "member with a copy; PROTO_NOBODY: none")

#define PROTO_PLACE(F, L)                                                                          \
    F(U32, bucket, 0, "which")                                                                     \
    F(U64, epoch, 0, "raised by every change of these places")                                     \
    F(U32, primary, 0, "member that serves it")                                                    \
    F(U32, second, 0, "secondary; PROTO_NOBODY: none")                                             \
    F(U32, third, 0, "secondary; PROTO_NOBODY: none")                                              \
    F(U32, joiner, 0, "member that copies it, to be a secondary; PROTO_NOBODY: none")

#define PROTO_PROPOSAL(F, L)                                                                       \
    F(U16, change, PROTO_CHANGE_LAST, "what is proposed (Changes)")                                \
    F(U32, bucket, 0, "of which bucket")                                                           \
    F(U64, epoch, 0, "of the bucket, as the sender knows it; in any other it is ignored")          \
    F(U32, primary, 0, "member that has the primary's lease in that epoch")                        \
    F(U32, member, 0, "that takes over, is complete, or does not answer")

#define PROTO_APPLIED(F, L)                                                                        \
    F(U64, session, 0, "that pushed")                                                              \
    F(U64, high, 0, "highest sequence number of its pushes that was applied")                      \
    F(U64, bits, 0, "bit i: push high - i was applied")

#define PROTO_RANGE(F, L)                                                                          \
    F(U64, first, 0, "place in the order of the epoch")                                            \
    F(U64, count, 0, "samples")

#define PROTO_LEASE_ID(F, L) F(U64, lease, 0, "number of the lease")

#define PROTO_TENSOR(F, L)                                                                         \
    F(U32, tensor, 0,                                                                              \
      "number in the order of the layers: weights of a layer, biases, running mean, variance")

#define PROTO_TOKEN(F, L) F(ID, token, 0, "of a checkpoint in parts")

#define PROTO_DROPPED(F, L)                                                                        \
    F(ID, run, 0, "that saved it")                                                                 \
    F(ID, token, 0, "of the checkpoint")

#define PROTO_REACHED(F, L)                                                                        \
    F(U32, shard, 0, "which")                                                                      \
    F(U64, version, 0, "of the oldest of its weights that were saved")

#define PROTO_HELD(F, L) F(U32, shard, 0, "which")

#define PROTO_NAMED(F, L) F(TEXT, name, PROTO_ADDRESS_MAX, "what it is called")

// How a member is doing.
#define PROTO_FIGURES(F)                                                                           \
    F(U16, state, PROTO_STATE_LAST, "what it is doing (States)")                                   \
    F(U64, clock, 0, "mini-batches trained on, or updates applied")                                \
    F(U64, samples, 0, "samples trained on, applied or served")                                    \
    F(U64, pushes, 0, "pushes sent, or applied")                                                   \
    F(U64, pulls, 0, "pulls asked for, or answered")                                               \
    F(U64, refused, 0, "requests refused; of a worker: pushes that were not applied")              \
    F(U64, received, 0, "bytes received")                                                          \
    F(U64, sent, 0, "bytes sent")                                                                  \
    F(F64, epoch, 0, "epochs of the data that are done, with the part of the present one")         \
    F(F64, rate, 0, "samples a second, lately")                                                    \
    F(F64, loss, 0, "mean training loss, lately; not a number: none")                              \
    F(F64, staleness, 0, "mean staleness of updates, lately")                                      \
    F(F64, waiting, 0, "share of its time spent waiting for data, lately")                         \
    F(F64, overlap, 0, "time of computing / (that + waiting for servers), lately (Rudra table 1)") \
    F(U64, dirty_bytes, 0, "of a server: bytes of shards that changed since they were stored")     \
    F(F64, at_risk, 0, "of the same: how many seconds ago the first did; not a number: no store")  \
    F(U64, behind, 0, "of a server: shards whose newest values are not on all copies yet")         \
    F(TEXT, waits_for, PROTO_ADDRESS_MAX, "whom it waits for, if anybody")

#define PROTO_MEMBER(F, L)                                                                         \
    F(U32, member, 0, "its number")                                                                \
    F(U16, role, PROTO_ROLE_LAST, "what it is (Roles)")                                            \
    F(U64, session, 0, "its session")                                                              \
    F(U32, silent, 0, "milliseconds since it was last heard of")                                   \
    F(TEXT, name, PROTO_NAME_MAX, "its name")                                                      \
    F(TEXT, address, PROTO_ADDRESS_MAX, "where it is administered")                                \
    F(U32, replica, 0, "of a worker: the replica of the model that it is of")                      \
    F(U32, partition, 0, "of a worker: the part of the model that it has")                         \
    F(TEXT, neighbours, PROTO_ADDRESS_MAX, "of a worker: where others of its replica reach it")    \
    PROTO_FIGURES(F)

// R(NAME, name)
#define PROTO_RECORDS(R)                                                                           \
    R(PIECE, piece)                                                                                \
    R(SERVER, server)                                                                              \
    R(BUCKET, bucket)                                                                              \
    R(PLACE, place)                                                                                \
    R(PROPOSAL, proposal)                                                                          \
    R(APPLIED, applied)                                                                            \
    R(RANGE, range)                                                                                \
    R(LEASE_ID, lease_id)                                                                          \
    R(TENSOR, tensor)                                                                              \
    R(TOKEN, token)                                                                                \
    R(DROPPED, dropped)                                                                            \
    R(REACHED, reached)                                                                            \
    R(HELD, held)                                                                                  \
    R(NAMED, named)                                                                                \
    R(MEMBER, member)

// Between any two.

#define PROTO_HELLO(F, L)                                                                          \
    F(U16, role, PROTO_ROLE_LAST, "what the caller is (Roles)")                                    \
    F(ID, run, 0, "the run it belongs to; zeros: whichever is here")                               \
    F(U64, model, 0, "hash of the model's text; 0: whichever is here")                             \
    F(U64, session, 0, "its session, which the controller gave it; 0: none yet")                   \
    F(TEXT, name, PROTO_NAME_MAX, "its name, for people")

#define PROTO_WELCOME(F, L)                                                                        \
    F(U16, role, PROTO_ROLE_LAST, "what the answering side is (Roles)")                            \
    F(ID, run, 0, "the run")                                                                       \
    F(U64, model, 0, "hash of the model's text")                                                   \
    F(U64, session, 0, "the caller's session: its own, or a new one")                              \
    F(U32, window, 0, "requests that the caller may have in flight")                               \
    F(TEXT, name, PROTO_NAME_MAX, "name of the answering side, for people")

#define PROTO_PING(F, L)

#define PROTO_LEAVE(F, L)                                                                          \
    F(U64, session, 0, "the session that ends")                                                    \
    F(TEXT, reason, PROTO_ADDRESS_MAX, "why, for people")

#define PROTO_DONE(F, L)

#define PROTO_REFUSED(F, L)                                                                        \
    F(U16, code, 0, "why (Refusals)")                                                              \
    F(U64, detail, 0, "what the code says")                                                        \
    F(TEXT, text, PROTO_REASON_MAX, "the same for people")

// Controllers.

#define PROTO_JOIN(F, L)                                                                           \
    F(U16, role, PROTO_ROLE_LAST, "what joins (Roles)")                                            \
    F(U32, threads, 0, "that it works with")                                                       \
    F(U64, memory, 0, "bytes that it may use")                                                     \
    F(TEXT, name, PROTO_NAME_MAX, "its name, for people")                                          \
    F(TEXT, training, PROTO_ADDRESS_MAX,                                                           \
      "where it serves workers, if it does; of a worker: where others of its replica reach it")    \
    F(TEXT, replication, PROTO_ADDRESS_MAX, "where it serves other parameter servers")             \
    F(TEXT, administration, PROTO_ADDRESS_MAX, "where it is administered")                         \
    F(U64, first, 0, "of a data server: the first sample that it serves")                          \
    F(U64, samples, 0, "of a data server: how many it serves")                                     \
    F(U64, whole, 0, "of a data server: samples of its data set")                                  \
    F(U32, digest, 0, "of the same: CRC-32 over keys, labels and targets of the data set")         \
    F(U32, classes, 0, "of the same: numbers of labels, or of targets")                            \
    F(U8, stores, 1, "of a parameter server: 1: what it holds outlives it, under its name")        \
    F(U8, parts, 1, "of the same: 1: it has a folder for parts of checkpoints that stay with it")  \
    L(held, held, PROTO_HELD_MAX, "of the same: shards of this run that its store has, ascending")

#define PROTO_JOINED(F, L)                                                                         \
    F(U32, member, 0, "its number in this run")                                                    \
    F(U64, session, 0, "its session: new at every joining, never used again")                      \
    F(U32, heartbeat, 0, "milliseconds from one heartbeat to the next")                            \
    F(U32, silence, 0, "milliseconds without any after which it counts as gone")                   \
    F(U32, epoch, 0, "of a data server: the first epoch in which its samples are still wanted")    \
    F(U32, replica, 0, "of a worker: the replica of the model that it is of")                      \
    F(U32, partition, 0, "of a worker: the part of the model that it has")

#define PROTO_HEARTBEAT(F, L)                                                                      \
    F(U64, session, 0, "of the sender")                                                            \
    PROTO_FIGURES(F)

#define PROTO_BEAT(F, L)                                                                           \
    F(U64, members, 0, "epoch of the membership, raised by every change")                          \
    F(U64, routes, 0, "epoch of the routes")                                                       \
    F(U64, settings, 0, "version of the settings")                                                 \
    F(U16, order, PROTO_ORDER_LAST, "what is wanted (Orders)")                                     \
    F(U64, number, 0, "of the order: each is carried out once")                                    \
    F(U8, begun, 1, "1: the run has its first weights, and gives none any more")

#define PROTO_GET_ROUTES(F, L)                                                                     \
    F(U64, known, 0, "epoch of the routes that the asker has; if newest, lists are empty")

#define PROTO_ROUTES(F, L)                                                                         \
    F(U64, epoch, 0, "of these routes")                                                            \
    F(U64, parameters, 0, "floats of the model")                                                   \
    L(server, servers, 4096, "the parameter servers")                                              \
    L(server, data_servers, 4096, "the data servers")                                              \
    L(bucket, buckets, 16384, "shard s is in bucket proto_bucket(s, their count)")

#define PROTO_GET_RUN(F, L)                                                                        \
    F(U64, known, 0, "version of the settings that the asker has; if newest, texts are empty")

#define PROTO_RUN(F, L)                                                                            \
    F(U64, version, 0, "of the settings")                                                          \
    F(TEXT, model, 1 << 18, "the model's text (adam-model(5))")                                    \
    F(TEXT, settings, 1 << 16, "lines KEY=VALUE")

#define PROTO_PAXOS(F, L)                                                                          \
    F(U16, step, PROTO_PAXOS_LAST, "of the protocol (Paxos steps)")                                \
    F(U32, from, 0, "controller that sends")                                                       \
    F(U32, to, 0, "controller that is meant")                                                      \
    F(U64, ballot, 0, "that this is about; of reject: the one that was promised instead")          \
    F(U64, accepted, 0,                                                                            \
      "ballot under which the sender's state was accepted; of blank, was blank, rejoin and "       \
      "admit: the number of the blank member's start")                                             \
    F(U64, version, 0,                                                                             \
      "of the state; of blank, was blank and rejoin: the receiver's start, as far as known")       \
    F(U64, time, 0,                                                                                \
      "milliseconds of the sender's clock, which accepted gives back; of promise: since another "  \
      "than the receiver led")                                                                     \
    F(BYTES, state, (1 << 20) - 64, "the controllers' whole state, where the step carries it")

#define PROTO_GET_METRICS(F, L)                                                                    \
    F(U64, from, 0, "bytes of the file that the asker has: it wants the lines after them")

#define PROTO_METRICS(F, L) F(U64, size, 0, "of the file, in bytes")

// Parameters.

#define PROTO_PULL(F, L)                                                                           \
    F(U64, session, 0, "of the sender")                                                            \
    F(U16, quantity, PROTO_QUANTITY_LAST,                                                          \
      "the weights, or the optimizer's state beside them (Quantities)")                            \
    F(U64, least, 0, "answer when every piece has this version or a later one; 0: at once")        \
    L(piece, pieces, PROTO_PIECES_MAX, "version: what the asker has; as new ones are left out")

#define PROTO_WEIGHTS(F, L)                                                                        \
    L(piece, pieces, PROTO_PIECES_MAX, "as asked for; count 0: unchanged, not in the payload")

#define PROTO_PUSH(F, L)                                                                           \
    F(U64, session, 0, "of the sender")                                                            \
    F(U64, sequence, 0, "of this push in the session: 1, 2...; a piece takes each once")           \
    F(U16, kind, PROTO_UPDATE_LAST, "what the payload holds (Updates)")                            \
    F(U32, samples, 0, "accumulated in it; 0: none, but the sender has taken its turn")            \
    F(F64, rate, 0, "learning rate of a gradient, 0 to 1e9, before the server's own factors")      \
    L(piece, pieces, PROTO_PIECES_MAX, "version: of the weights that it was computed on")

#define PROTO_PUSH_FACTORS(F, L)                                                                   \
    F(U64, session, 0, "of the sender")                                                            \
    F(U64, sequence, 0, "of this push in the session, as in push")                                 \
    F(U32, samples, PROTO_SHARD_FLOATS, "k")                                                       \
    F(F64, rate, 0, "learning rate, as in push")                                                   \
    F(U32, rows, 0, "outputs of the layer, N")                                                     \
    F(U32, columns, 0, "inputs of the layer, M")                                                   \
    F(U64, weights, 0, "place of the rows x columns matrix among the parameters")                  \
    F(U64, biases, 0, "place of the biases; PROTO_NOWHERE: none")                                  \
    L(piece, pieces, PROTO_PIECES_MAX, "which parts of the two are meant; version: as in push")

#define PROTO_PUSHED(F, L)                                                                         \
    F(U64, sequence, 0, "of the push")                                                             \
    F(U8, repeated, 1, "1: it had been applied before, and was not again")                         \
    L(piece, pieces, PROTO_PIECES_MAX, "version: after the push")

#define PROTO_GET_VERSIONS(F, L)                                                                   \
    F(U32, first, 0, "shard")                                                                      \
    F(U32, count, PROTO_PIECES_MAX, "shards; those that the server does not hold are left out")

#define PROTO_VERSIONS(F, L) L(piece, pieces, PROTO_PIECES_MAX, "one of each whole shard")

#define PROTO_STORE(F, L)                                                                          \
    F(U16, quantity, PROTO_QUANTITY_LAST, "what the payload holds (Quantities)")                   \
    L(piece, pieces, PROTO_PIECES_MAX, "version: that the shard has then")

// Data.

#define PROTO_GET_DATA(F, L)                                                                       \
    F(U32, names, 0, "label from which on names of classes are wanted; 4294967295: none")

#define PROTO_DATA(F, L)                                                                           \
    F(TEXT, name, PROTO_ADDRESS_MAX, "of the data set")                                            \
    F(U64, whole, 0, "samples of the data set")                                                    \
    F(U64, first, 0, "of them in this server's range")                                             \
    F(U64, samples, 0, "in this server's range")                                                   \
    F(U32, digest, 0, "CRC-32 over keys, labels and targets of the data set")                      \
    F(U32, classes, 0, "numbers of labels, or of targets")                                         \
    F(U32, channels, 0, "of a picture")                                                            \
    F(U32, height, 0, "of a picture")                                                              \
    F(U32, width, 0, "of a picture")                                                               \
    F(U16, value, PROTO_VALUE_LAST, "what a value of a picture is (Values)")                       \
    F(U32, epoch, 0, "that is being served")                                                       \
    L(named, names, 65536, "of classes, as many as fit; more: by another get_data")

#define PROTO_LEASE(F, L)                                                                          \
    F(U64, session, 0, "of the sender")                                                            \
    F(U32, epoch, 0, "that the asker works on; refused when it is over")                           \
    F(U32, samples, 0, "wanted")                                                                   \
    F(U64, step, 0, "clock of the weights that they are for, where all workers share every step")  \
    F(U64, clock, 0, "of the newest weights that the asker knows: the steps before it are over")

#define PROTO_BATCH(F, L)                                                                          \
    F(U64, lease, 0, "number of the lease, for finish")                                            \
    F(U32, deadline, 0, "milliseconds after which the samples are handed to another")              \
    F(U32, epoch, 0, "to which they belong")                                                       \
    F(U64, first, 0, "place of the first in the order of the epoch")                               \
    F(U32, samples, 0,                                                                             \
      "in the payload; fewer at an epoch's end; 0: none for this step, take the turn without")

#define PROTO_FINISH(F, L)                                                                         \
    F(U64, session, 0, "of the sender")                                                            \
    L(lease_id, leases, 4096, "what was trained on")                                               \
    L(lease_id, returned, 4096, "what was not trained on for good: it is handed out again at once")

#define PROTO_PROGRESS(F, L)                                                                       \
    F(U32, epoch, 0, "that is being served")                                                       \
    F(U64, finished, 0, "samples finished in it")                                                  \
    F(U64, samples, 0, "in it altogether")

#define PROTO_GET_CURSOR(F, L)

#define PROTO_CURSOR(F, L)                                                                         \
    F(U64, seed, 0, "of the order")                                                                \
    F(U32, epoch, 0, "that is being served")                                                       \
    L(range, finished, 32768, "what of it is finished")

#define PROTO_SET_CURSOR(F, L) PROTO_CURSOR(F, L)

#define PROTO_HOLD(F, L)                                                                           \
    F(U64, session, 0, "of the sender")                                                            \
    L(lease_id, leases, PROTO_LEASES_MAX, "that have reached it, if they were not finished")

// Administration.

#define PROTO_GET_STATUS(F, L)                                                                     \
    F(U64, known, 0, "epoch of the membership that the asker has; if newest, no list; 0: all")

#define PROTO_STATUS(F, L)                                                                         \
    F(ID, run, 0, "the run")                                                                       \
    F(U64, epoch, 0, "of the membership")                                                          \
    F(U32, idle, 0, "seconds for which nothing was trained, although there is work")               \
    F(F64, left_out, 0, "share of the data that the run goes on without, 0 to 1")                  \
    L(member, members, 2048, "of a controller: all; of another: itself")

#define PROTO_SET(F, L) F(TEXT, settings, 4096, "lines KEY=VALUE, all of them or none")

#define PROTO_SAVE(F, L)                                                                           \
    F(U64, number, 0, "of the checkpoint")                                                         \
    F(TEXT, path, 1024, "folder of the checkpoint")

#define PROTO_SAVED(F, L)                                                                          \
    F(U64, number, 0, "of the checkpoint")                                                         \
    F(U64, bytes, 0, "written")                                                                    \
    F(TEXT, path, 1024, "what was written")

#define PROTO_STOP(F, L)                                                                           \
    F(U8, save, 1, "1: after a checkpoint")                                                        \
    F(U32, grace, 0, "milliseconds after which it ends without")

#define PROTO_REPORT(F, L)                                                                         \
    F(U64, session, 0, "of the sender")                                                            \
    F(TEXT, line, 1 << 16, "a line of metrics (adam-metrics(5))")

#define PROTO_DRAIN(F, L)                                                                          \
    F(TEXT, name, PROTO_NAME_MAX, "of the parameter server whose buckets are to move away")

#define PROTO_SAVE_PART(F, L)                                                                      \
    F(TEXT, folder, 1024,                                                                          \
      "of the checkpoint in the making: an absolute path; empty: in the server's own folder")      \
    F(ID, token, 0, "what its file token holds, in hexadecimal digits")                            \
    F(U32, part, 0, "which part this is, from 1")                                                  \
    F(U32, parts, 0, "of so many")                                                                 \
    L(tensor, tensors, 65536, "that the part has, ascending; with each its state of the rule")     \
    L(token, kept, 4096, "checkpoints of which parts stay in the server's own folder")

#define PROTO_PART_SAVED(F, L)                                                                     \
    F(U64, bytes, 0, "of the file")                                                                \
    F(U32, crc, 0, "CRC-32 of the file")                                                           \
    L(reached, shards, 65536, "those that the part has weights of")

#define PROTO_READ_PART(F, L)                                                                      \
    F(ID, run, 0, "that saved it")                                                                 \
    F(ID, token, 0, "of the checkpoint")                                                           \
    F(U32, part, 0, "which part, from 1")                                                          \
    F(U32, parts, 0, "of so many")                                                                 \
    F(U64, offset, 0, "first byte that is wanted")                                                 \
    F(U32, bytes, 1 << 22, "wanted")

#define PROTO_PART(F, L) F(U64, size, 0, "bytes of the whole file")

#define PROTO_DROP_PARTS(F, L) L(dropped, checkpoints, 4096, "that are no more")

// Replication (lib/replica/replica.h has the protocol).

#define PROTO_PREPARE(F, L)                                                                        \
    F(U32, from, 0, "member that sends: the primary of the shard's bucket")                        \
    F(U32, shard, 0, "which")                                                                      \
    F(U64, epoch, 0, "of its bucket: lower ones than the receiver's are refused")                  \
    F(U64, base_epoch, 0, "stamp of the values that the blocks change: its epoch")                 \
    F(U64, base_version, 0, "and its version")                                                     \
    F(U64, stamp_epoch, 0, "stamp of the values with these blocks: its epoch")                     \
    F(U64, stamp_version, 0, "and its version")                                                    \
    F(U8, whole, 1, "1: these are all blocks, and the base does not matter")                       \
    F(U64, blocks, 0, "bit i: block i of the shard, of 4096 floats, is in the payload")            \
    L(applied, applied, 4096, "pushes that were applied to these values")

#define PROTO_COMMIT(F, L)                                                                         \
    F(U32, from, 0, "member that sends: the primary of the shard's bucket")                        \
    F(U32, shard, 0, "which")                                                                      \
    F(U64, epoch, 0, "of its bucket: lower ones than the receiver's are refused")                  \
    F(U64, stamp_epoch, 0, "stamp of the values that all have prepared: its epoch")                \
    F(U64, stamp_version, 0, "and its version")

#define PROTO_PREPARED(F, L)                                                                       \
    F(U32, from, 0, "member that sends")                                                           \
    F(U32, shard, 0, "which")                                                                      \
    F(U64, epoch, 0, "of its bucket")                                                              \
    F(U64, asked_epoch, 0, "stamp of the message that this answers: its epoch")                    \
    F(U64, asked_version, 0, "and its version")                                                    \
    F(U64, stamp_epoch, 0, "stamp of the newest values that the sender has: its epoch")            \
    F(U64, stamp_version, 0, "and its version")                                                    \
    F(U64, committed_epoch, 0, "stamp of the values that are installed: its epoch")                \
    F(U64, committed_version, 0, "and its version")

#define PROTO_PULSE(F, L) F(U32, from, 0, "member that sends: a primary of the receiver's buckets")

#define PROTO_PROPOSE(F, L)                                                                        \
    F(U64, session, 0, "of the sender")                                                            \
    L(proposal, proposals, 4096, "each for a bucket that the sender is a member of")

#define PROTO_GET_PLACES(F, L)                                                                     \
    F(U64, session, 0, "of the sender")                                                            \
    F(U64, known, 0, "epoch of the routes that the asker has; if newest, the list is empty")

#define PROTO_PLACES(F, L)                                                                         \
    F(U64, epoch, 0, "of the routes")                                                              \
    F(U32, lease, 0, "milliseconds for which the asker may serve as a primary, from its asking")   \
    L(place, places, 16384, "of all buckets")

// Workers of a replica (model/cut.h).

#define PROTO_FLY(F, L)                                                                            \
    F(U64, session, 0, "of the sender")                                                            \
    F(U64, number, 0, "of the mini-batch: 0, 1...; it is passed in place number % in-flight")      \
    F(U32, samples, PROTO_SHARD_FLOATS, "in it; 0: none, but its turn is taken")                   \
    F(U32, targets, 0, "numbers that a sample has as its targets; 0: it has a label")              \
    F(U8, mixed, 1, "1: each sample is mixed with another")                                        \
    F(F64, rate, 0, "learning rate")

#define PROTO_LANDED(F, L)                                                                         \
    F(U64, number, 0, "of the mini-batch")                                                         \
    F(F64, loss, 0, "the sender's share of the loss of all its samples")                           \
    F(U8, refused, 1, "1: something was not finite, and nothing was applied")

#define PROTO_EXCHANGE(F, L)                                                                       \
    F(U64, session, 0, "of the sender")                                                            \
    F(U32, place, 0, "of the pass, among those in flight")                                         \
    F(U32, exchange, 0, "of the model's cut")                                                      \
    F(U8, back, 1, "1: of the backward pass")

// M(number, NAME, name, answer, payload, meaning). Answers answer nothing: NONE.
#define PROTO_MESSAGES(M)                                                                          \
    M(0x0101, HELLO, hello, WELCOME, 0, "who calls; the first message of every connection")        \
    M(0x8101, WELCOME, welcome, NONE, 0, "who answers")                                            \
    M(0x0102, PING, ping, DONE, 0, "is anybody there?")                                            \
    M(0x0103, LEAVE, leave, DONE, 0, "the sender ends its session")                                \
    M(0x8102, DONE, done, NONE, 0, "carried out; nothing more to say")                             \
    M(0x8103, REFUSED, refused, NONE, 0, "not carried out, no part of it")                         \
    M(0x0201, JOIN, join, JOINED, 0, "asks a controller to become a member of the run")            \
    M(0x8201, JOINED, joined, NONE, 0, "a member now")                                             \
    M(0x0202, HEARTBEAT, heartbeat, BEAT, 0, "the sender lives, and how it is doing")              \
    M(0x8202, BEAT, beat, NONE, 0, "what changed, and what is wanted")                             \
    M(0x0203, GET_ROUTES, get_routes, ROUTES, 0, "which server has which bucket?")                 \
    M(0x8203, ROUTES, routes, NONE, 0, "who has what")                                             \
    M(0x0204, GET_RUN, get_run, RUN, 0, "what is trained, and how?")                               \
    M(0x8204, RUN, run, NONE, 0, "the model and the settings")                                     \
    M(0x0205, PAXOS, paxos, NONE, 0, "between controllers; never answered, but by another")        \
    M(0x0206, GET_METRICS, get_metrics, METRICS, 0,                                                \
      "between controllers: what did the leader add to the metrics of the run?")                   \
    M(0x8206, METRICS, metrics, NONE, 1, "whole lines of it (adam-metrics(5)), or nothing")        \
    M(0x0301, PULL, pull, WEIGHTS, 0, "asks for weights")                                          \
    M(0x8301, WEIGHTS, weights, NONE, 1, "the pieces asked for")                                   \
    M(0x0302, PUSH, push, PUSHED, 1, "an update: a float for each float of the pieces")            \
    M(0x0303, PUSH_FACTORS, push_factors, PUSHED, 1,                                               \
      "a gradient as its factors: k x rows error gradients, then k x columns activations")         \
    M(0x8302, PUSHED, pushed, NONE, 0, "the update was applied")                                   \
    M(0x0304, GET_VERSIONS, get_versions, VERSIONS, 0, "how new are the shards?")                  \
    M(0x8304, VERSIONS, versions, NONE, 0, "this new")                                             \
    M(0x0305, STORE, store, DONE, 1,                                                               \
      "sets weights, as a checkpoint or an initialisation has them")                               \
    M(0x0401, GET_DATA, get_data, DATA, 0, "what is served?")                                      \
    M(0x8401, DATA, data, NONE, 0, "this data set")                                                \
    M(0x0402, LEASE, lease, BATCH, 0, "asks for samples to train on")                              \
    M(0x8402, BATCH, batch, NONE, 1,                                                               \
      "samples: hashes of their keys (64 bits each); labels (32 bits each); where these are -1, "  \
      "targets of each (32-bit floats), as many as the length of the payload says; values of "     \
      "each, height x width x channels")                                                           \
    M(0x0403, FINISH, finish, PROGRESS, 0, "leases are trained on, or given back")                 \
    M(0x8403, PROGRESS, progress, NONE, 0, "how far the epoch is")                                 \
    M(0x0404, GET_CURSOR, get_cursor, CURSOR, 0, "what must a checkpoint remember?")               \
    M(0x8404, CURSOR, cursor, NONE, 0, "how far the data server is")                               \
    M(0x0405, SET_CURSOR, set_cursor, DONE, 0, "go on from here")                                  \
    M(0x0406, HOLD, hold, DONE, 0,                                                                 \
      "a worker that has called again: its other leases were lost with the connection before")     \
    M(0x0501, GET_STATUS, get_status, STATUS, 0, "who is there, doing what?")                      \
    M(0x8501, STATUS, status, NONE, 0, "they are, doing this")                                     \
    M(0x0502, SET, set, DONE, 0, "changes settings of the run")                                    \
    M(0x0503, SAVE, save, SAVED, 0, "write a checkpoint")                                          \
    M(0x8503, SAVED, saved, NONE, 0, "it is written, and on the disk")                             \
    M(0x0504, STOP, stop, DONE, 0, "stop")                                                         \
    M(0x0505, REPORT, report, DONE, 0, "a line for the metrics of the run")                        \
    M(0x0506, DRAIN, drain, DONE, 0, "the buckets of a parameter server begin to move to others")  \
    M(0x0507, SAVE_PART, save_part, PART_SAVED, 0,                                                 \
      "a parameter server writes a part of a checkpoint (adam-checkpoint(5))")                     \
    M(0x8507, PART_SAVED, part_saved, NONE, 0, "it is written, and on the disk")                   \
    M(0x0508, READ_PART, read_part, PART, 0,                                                       \
      "asks for bytes of a part in the server's own folder")                                       \
    M(0x8508, PART, part, NONE, 1, "these bytes, fewer at the end of the file")                    \
    M(0x0509, DROP_PARTS, drop_parts, DONE, 0,                                                     \
      "removes parts of checkpoints from the server's own folder")                                 \
    M(0x0601, PREPARE, prepare, PREPARED, 1,                                                       \
      "what changed in a shard: the blocks' weights, then each state of the rule, if it has any")  \
    M(0x8601, PREPARED, prepared, NONE, 0, "what the sender has of the shard")                     \
    M(0x0602, COMMIT, commit, PREPARED, 0, "all members have prepared it: install it")             \
    M(0x0603, PULSE, pulse, DONE, 0, "the primary lives")                                          \
    M(0x0604, PROPOSE, propose, DONE, 0, "proposes changes of who has buckets to a controller")    \
    M(0x0605, GET_PLACES, get_places, PLACES, 0, "who has the copies of my buckets?")              \
    M(0x8605, PLACES, places, NONE, 0, "they have, and this is your lease")                        \
    M(0x0701, FLY, fly, LANDED, 1,                                                                 \
      "a mini-batch that all partitions pass: what each sample draws (64 bits each); labels (32 "  \
      "bits each); where it has targets, these (32-bit floats); where it is mixed, the other "     \
      "labels, and the shares of the first ones (32-bit floats)")                                  \
    M(0x8701, LANDED, landed, NONE, 0, "the sender has passed it forward and back")                \
    M(0x0702, EXCHANGE, exchange, DONE, 1,                                                         \
      "what a layer gives, or its error gradients, for the receiver; answered when it was read")

#endif
