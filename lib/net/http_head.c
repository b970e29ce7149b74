#include "net/http_head.h"

#include <string.h>
#include <strings.h>

const char *http_head_path(const char *target) {
    static const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(schemes[i]);
        if (strncasecmp(target, schemes[i], length) != 0)
            continue;
        const char *host = target + length, *path = host + strcspn(host, "/?# \r\n");
        return path == host ? NULL : *path == '/' ? path : "/";
    }
    return target;
}

bool http_head_may_have(bool earlier, int hosts) {
    return hosts == 1 || (earlier && hosts == 0);
}

bool http_head_is_clear(const char *head) {
    static const char name[] = "host:";
    const char *end = head + strcspn(head, "\n");
    bool earlier = end - head >= 9 && !strncmp(end - (end[-1] == '\r') - 8, "HTTP/1.0", 8);
    int hosts = 0;
    for (const char *line = end; *line && !strchr("\r\n", line[1]);
         line += 1 + strcspn(line + 1, "\n")) {
        size_t length = strcspn(line + 1, ":\n");
        if (length > 0 && line[1 + length] == ':' && strchr(" \t", line[length]))
            return false;
        hosts += !strncasecmp(line + 1, name, sizeof name - 1);
    }
    return http_head_may_have(earlier, hosts);
}
