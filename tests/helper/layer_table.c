// Prints the table of layer types for the test of adam-model(5), a line a key:
//   TYPE KEY RANGE DEFAULT, separated by tabs; a type without keys has one line.
// Keys that many types share are those of the type "common".
#include <stdio.h>

#include "model/layer.h"

static void print_key(const char *type, const struct layer_key *key) {
    printf("%s\t%s\t", type, key->name);
    if (key->kind == KEY_CHOICE)
        for (int i = 0; key->choices[i]; i++)
            printf("%s%s", i ? " | " : "", key->choices[i]);
    else if (key->kind == KEY_INT || key->kind == KEY_REAL || key->kind == KEY_PAIR)
        printf("%.10g to %.10g", key->low, key->high);
    else if (key->kind == KEY_REALS)
        printf("%.10g to %.10g each", key->low, key->high);
    printf("\t%s\n", key->standard ? key->standard : "no default");
}

int main(void) {
    size_t types, common;
    const struct layer_type *const *type = layer_types(&types);
    for (size_t i = 0; i < types; i++) {
        if (type[i]->key_count == 0)
            printf("%s\n", type[i]->name);
        for (size_t j = 0; j < type[i]->key_count; j++)
            print_key(type[i]->name, &type[i]->keys[j]);
    }
    const struct layer_key *keys = layer_common_keys(&common);
    for (size_t i = 0; i < common; i++)
        print_key("common", &keys[i]);
    return 0;
}
