// The table of operations as lines "synopsis TEXT", "word WORD" and "default
// OPERATION PARAMETER VALUE"; or, given chains, whether each is accepted.
#include <stdio.h>

#include "core/error.h"
#include "ops/ops.h"

static void list(void) {
    size_t count;
    const struct op_info *table = ops_table(&count);
    for (size_t i = 0; i < count; i++) {
        printf("synopsis %s\n", table[i].synopsis);
        for (size_t j = 0; j < table[i].parameter_count; j++) {
            const struct op_parameter *parameter = &table[i].parameters[j];
            for (int k = 0; parameter->words && parameter->words[k]; k++)
                printf("word %s\n", parameter->words[k]);
            if (parameter->name && parameter->default_text && *parameter->default_text)
                printf("default %s %s %s\n", table[i].name, parameter->name,
                       parameter->default_text);
        }
    }
}

int main(int argc, char **argv) {
    int failed = 0;
    if (argc == 1)
        list();
    for (int i = 1; i < argc; i++) {
        struct ops *ops;
        struct error err = {0};
        size_t offset, length;
        if (ops_parse(&ops, argv[i], 0, &offset, &length, &err)) {
            printf("%s\n%*s^ %s\n", argv[i], (int)offset, "", err.text);
            failed = 1;
        }
        ops_free(ops);
    }
    return failed;
}
