#include "remote/class_names.h"

#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "proto/kept.h"

static int add_name(struct classes *names, const struct proto_text *text, struct error *err) {
    char name[PROTO_ADDRESS_MAX + 1];
    int label, wanted = names->count;
    snprintf(name, sizeof name, "%.*s", (int)text->length, text->at);
    int status = classes_label(names, name, &label, err);
    if (status || label == wanted)
        return status;
    return error_set(err, STATUS_DATA, "classes %d and %d are both called '%s'", label, wanted,
                     name);
}

// The answer to one get_data: some names more, at least one.
static int add_names(struct classes *names, const struct proto_data *data, struct error *err) {
    const struct proto_named *named = data->names.at;
    int status = STATUS_OK;
    if (data->names.count == 0)
        return error_set(err, STATUS_UNAVAILABLE, "it knows no names of classes");
    for (uint32_t i = 0; !status && i < data->names.count; i++)
        status = add_name(names, &named[i].name, err);
    return status;
}

static int ask_server(struct link *link, struct classes *names, bool *more, struct error *err) {
    const struct proto_get_data get_data = {.names = (uint32_t)names->count};
    struct link_request request = {.type = PROTO_TYPE_GET_DATA, .message = &get_data};
    struct kept *answer;
    int status = link_call_kept(link, &request, &answer, err);
    if (status)
        return status;
    if (answer->type == PROTO_TYPE_DATA) {
        status = add_names(names, &answer->message.data, err);
        *more = (uint32_t)names->count < answer->message.data.classes;
    } else {
        status = error_set(err, STATUS_UNAVAILABLE, "refused: %s",
                           proto_refusal_name(answer->message.refused.code));
    }
    kept_drop(answer);
    return status ? error_context(err, "%s", link_address(link)) : STATUS_OK;
}

static int ask_names(struct classes *names, const struct proto_server *source,
                     const struct proto_hello *hello, const struct link_options *options,
                     uint32_t timeout, struct error *err) {
    char address[PROTO_ADDRESS_MAX + 1];
    struct link *link;
    bool more = true;
    snprintf(address, sizeof address, "%.*s", (int)source->training.length, source->training.at);
    int status = link_dial(&link, address, options, hello, timeout, NULL, err);
    if (status)
        return status;
    while (!status && more)
        status = ask_server(link, names, &more, err);
    link_close(link);
    return status;
}

int class_names_fetch(struct classes *names, const struct proto_routes *routes,
                      const struct proto_hello *hello, const struct link_options *options,
                      uint32_t timeout, struct error *err) {
    const struct proto_server *servers = routes->data_servers.at;
    int status = error_set(err, STATUS_UNAVAILABLE, "there is no data server");
    for (uint32_t i = 0; status == STATUS_UNAVAILABLE && i < routes->data_servers.count; i++) {
        classes_free(names);
        *names = (struct classes){0};
        status = ask_names(names, &servers[i], hello, options, timeout, err);
    }
    if (!status && err)
        *err = (struct error){0};
    return status;
}
