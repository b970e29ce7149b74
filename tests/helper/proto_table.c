// Prints the tables of the wire as the part of adam-protocol(5) that follows from them.
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/proto.h"

static void print_item(unsigned number, const char *name, const char *text) {
    printf(".It %u Ta %s%s%s\n", number, name, *text ? " Ta " : "", text);
}

#define ITEM(number, NAME, name) print_item(number, name, "");
#define REFUSAL(number, NAME, name, text) print_item(number, name, text);

#define NAMES "\"10\" \"parameter server\""
#define PRINT(title, columns, TABLE, ROW)                                                          \
    printf(".Ss " title "\n.Bl -column " columns "\n");                                            \
    TABLE(ROW)                                                                                     \
    printf(".El\n")

static void print_names(void) {
    PRINT("Roles", NAMES, PROTO_ROLES, ITEM);
    PRINT("States", NAMES, PROTO_STATES, ITEM);
    PRINT("Orders", NAMES, PROTO_ORDERS, ITEM);
    PRINT("Updates", NAMES, PROTO_UPDATES, ITEM);
    PRINT("Quantities", NAMES, PROTO_QUANTITIES, ITEM);
    PRINT("Values", NAMES, PROTO_VALUES, ITEM);
    PRINT("Paxos steps", NAMES, PROTO_PAXOS_STEPS, ITEM);
    PRINT("Changes", NAMES, PROTO_CHANGES, ITEM);
    PRINT("Refusals", NAMES " \"unknown session\"", PROTO_REFUSALS, REFUSAL);
}

static void print_kind(const struct proto_field *field) {
    static const char *const kinds[] = {
        [PROTO_KIND_U8] = "u8",     [PROTO_KIND_U16] = "u16",     [PROTO_KIND_U32] = "u32",
        [PROTO_KIND_U64] = "u64",   [PROTO_KIND_F64] = "f64",     [PROTO_KIND_ID] = "id",
        [PROTO_KIND_TEXT] = "text", [PROTO_KIND_BYTES] = "bytes", [PROTO_KIND_LIST] = "list of",
    };
    printf("%s", kinds[field->kind]);
    if (field->kind == PROTO_KIND_LIST)
        printf(" %s", field->record()->name);
    printf(" Ta ");
    if (field->limit > 0)
        printf("%" PRIu64, field->limit);
}

// A sentence, of what is a part of one in the table.
static void print_text(const char *text) {
    size_t length = strlen(text);
    printf("%c%s%s\n", toupper(*text), text + 1, text[length - 1] == '?' ? "" : ".");
}

static void print_fields(const struct proto_layout *layout) {
    if (layout->count == 0)
        return;
    printf(".Bl -column \"administration\" \"list of piece\" \"262144\" \"meaning\"\n");
    for (size_t i = 0; i < layout->count; i++) {
        printf(".It %s Ta ", layout->fields[i].name);
        print_kind(&layout->fields[i]);
        printf(" Ta %s\n", layout->fields[i].text);
    }
    printf(".El\n");
}

static void print_message(const struct proto_layout *layout) {
    printf(".Ss 0x%04x %s\n", layout->type, layout->name);
    print_text(layout->text);
    if (layout->payload)
        printf("Carries a payload.\n");
    if (layout->answer)
        printf("Answered by\n.Cm %s .\n", proto_message_name(layout->answer));
    print_fields(layout);
}

// Each record once, where a list of a message first names it.
static void print_records(void) {
    const struct proto_layout *printed[16], *message;
    size_t count = 0;
    for (size_t i = 0; (message = proto_message(i)); i++)
        for (size_t j = 0; j < message->count; j++) {
            if (message->fields[j].kind != PROTO_KIND_LIST)
                continue;
            const struct proto_layout *record = message->fields[j].record();
            size_t known = 0;
            while (known < count && printed[known] != record)
                known++;
            if (known < count || count == sizeof printed / sizeof *printed)
                continue;
            printed[count++] = record;
            printf(".Ss Record %s\n", record->name);
            print_fields(record);
        }
}

int main(void) {
    const struct proto_layout *message;
    printf(".Sh MESSAGES\n");
    for (size_t i = 0; (message = proto_message(i)); i++)
        print_message(message);
    printf(".Sh RECORDS\n");
    print_records();
    printf(".Sh NUMBERS\n");
    print_names();
    return 0;
}
