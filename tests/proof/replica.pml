/* The commit protocol and the change of roles (lib/replica/replica.h) for one shard, as a model for
 * Spin: all interleavings at small sizes.
 *
 * Servers 0..SERVERS-1 have values, which are the set of pushes in them (a bit each), and a stamp.
 * A stamp here is the place in a list of all stamps that were ever made, with the epoch and the
 * values of each: equal stamps are equal places. The controllers are one register: places are
 * changed one at a time, and each server learns of the newest whenever it does. Messages of each
 * pair of servers may be lost, doubled and overtaken: `net` is a set of those that were ever sent,
 * and a message may be received at any time after, any number of times.
 *
 * Checked in every state: each acknowledged push is on every member of the newest place.
 *
 *   BUG 0  none
 *       1  a takeover drops what is prepared
 *       2  messages of lower epochs are accepted
 *       3  a round is committed when one other has prepared it
 *       4  a joiner is a member before it has the values
 *       5  the primary does not wait for a joiner that it has proposed
 */
#ifndef SERVERS
#define SERVERS 3
#endif
#ifndef PUSHES
#define PUSHES 2
#endif
#ifndef EPOCHS
#define EPOCHS 3 /* the last one */
#endif
#ifndef BUG
#define BUG 0
#endif
#define STAMPS 7
#define NOBODY 7

typedef Place {
    byte primary;
    byte members; /* with the primary */
    byte joiner
}
Place place[EPOCHS + 1];
byte newest = 1;

/* Stamps that were made: their epoch and their values. */
byte stamp_epoch[STAMPS];
byte stamp_values[STAMPS];
byte stamps = 1; /* 0: no values */

typedef Server {
    byte epoch;    /* of the place that it knows */
    byte installed;
    byte prepared; /* equal to installed: nothing */
    byte follows;  /* the epoch in which it has taken a stamp of the primary */
    /* the primary */
    byte values;   /* live */
    byte base;
    byte stamp;    /* of the round */
    byte level;    /* who has it */
    bool counted
}
Server server[SERVERS];

/* PREPARE base -> stamp of an epoch, whole or not, to all; PREPARED by each. */
bool sent[(EPOCHS + 1) * STAMPS * STAMPS]; /* prepare (epoch, base, stamp) */
bool whole[(EPOCHS + 1) * STAMPS];         /* prepare (epoch, stamp) with all values */
byte has[(EPOCHS + 1) * STAMPS];           /* prepared (epoch, stamp) by these */
bool commits[(EPOCHS + 1) * STAMPS];       /* commit (epoch, stamp) */
bool completes[EPOCHS + 1];                /* the primary proposed the joiner */

byte acknowledged;

#define BIT(i) (1 << (i))
#define IN(set, i) (((set) >> (i)) & 1)
#define AT(e, s) ((e) * STAMPS + (s))
#define PREPARE(e, b, s) (((e) * STAMPS + (b)) * STAMPS + (s))
#define ROLE_PRIMARY(i) (place[server[i].epoch].primary == (i))
#define COPIES(i, e) (IN(place[e].members, i) || place[e].joiner == (i))

/* What a server would have as a primary: prepared and installed. */
#define TOP(i) server[i].prepared

inline check() {
    d_step {
        k = 0;
        do
        :: k < SERVERS ->
            if
            :: IN(place[newest].members, k) && server[k].epoch > 0 && ROLE_PRIMARY(k) ->
                assert((acknowledged & ~server[k].values) == 0)
            :: IN(place[newest].members, k) && !(server[k].epoch > 0 && ROLE_PRIMARY(k)) ->
                assert((acknowledged & ~stamp_values[TOP(k)]) == 0)
            :: else
            fi;
            k++
        :: else -> break
        od;
        k = 0
    }
}

/* The controllers make the next place of the newest one. */
inline next_place(new_primary, new_members, new_joiner) {
    newest++;
    place[newest].primary = new_primary;
    place[newest].members = new_members;
    place[newest].joiner = new_joiner
}

init {
    byte i, j, k, e, b, s;
    d_step {
        place[1].primary = 0;
        place[1].members = BIT(0) | BIT(1);
        place[1].joiner = (SERVERS > 2 -> 2 : NOBODY)
    }
    do
    /* --- controllers ------------------------------------------------------------------- */
    :: atomic { newest < EPOCHS ->
        e = newest;
        if
        /* the primary is lost, or a secondary takes over: another member is the primary */
        :: select (i : 0 .. SERVERS - 1);
            if
            :: IN(place[e].members, i) && place[e].primary != i ->
                next_place(i, place[e].members & ~BIT(place[e].primary), place[e].joiner)
            :: else
            fi
        /* roles are exchanged */
        :: select (i : 0 .. SERVERS - 1);
            if
            :: IN(place[e].members, i) && place[e].primary != i ->
                next_place(i, place[e].members, place[e].joiner)
            :: else
            fi
        /* a secondary is dropped, and joins again */
        :: select (i : 0 .. SERVERS - 1);
            if
            :: IN(place[e].members, i) && place[e].primary != i && place[e].joiner == NOBODY ->
                next_place(place[e].primary, place[e].members & ~BIT(i), i)
            :: else
            fi
        /* the joiner is complete */
        :: if
            :: place[e].joiner != NOBODY && (completes[e] || BUG == 4) ->
                next_place(place[e].primary, place[e].members | BIT(place[e].joiner), NOBODY)
            :: else
            fi
        fi;
        i = 0; e = 0;
        check() }

    /* --- a server learns of the newest place ------------------------------------------- */
    :: atomic { select (i : 0 .. SERVERS - 1);
        if
        :: server[i].epoch < newest ->
            if
            :: server[i].epoch > 0 && ROLE_PRIMARY(i) && place[newest].primary != i ->
                /* retires: its live values get a stamp of the old epoch */
                if
                :: server[i].values != stamp_values[server[i].stamp] && stamps < STAMPS ->
                    stamp_epoch[stamps] = server[i].epoch;
                    stamp_values[stamps] = server[i].values;
                    server[i].stamp = stamps;
                    stamps++
                :: else -> /* no stamp left: what was not replicated is lost */
                    skip
                fi;
                server[i].installed = server[i].stamp;
                server[i].prepared = server[i].stamp
            :: place[newest].primary == i && (server[i].epoch == 0 || !ROLE_PRIMARY(i)) ->
                /* takes over: commits what is prepared */
                if
                :: BUG != 1 -> server[i].installed = server[i].prepared
                :: else -> server[i].prepared = server[i].installed
                fi;
                server[i].values = stamp_values[server[i].installed];
                server[i].stamp = server[i].installed;
                server[i].base = server[i].installed
            :: else
            fi;
            server[i].epoch = newest;
            server[i].level = 0;
            server[i].counted = false;
            if
            :: !COPIES(i, newest) -> server[i].prepared = server[i].installed
            :: else
            fi;
            if
            :: ROLE_PRIMARY(i) ->
                sent[PREPARE(newest, server[i].base, server[i].stamp)] = true
            :: else
            fi
        :: else
        fi;
        i = 0;
        check() }

    /* --- the primary ------------------------------------------------------------------- */
    /* a push is applied */
    :: atomic { select (i : 0 .. SERVERS - 1); select (j : 0 .. PUSHES - 1);
        if
        :: server[i].epoch > 0 && ROLE_PRIMARY(i) && !IN(server[i].values, j) ->
            server[i].values = server[i].values | BIT(j)
        :: else
        fi;
        i = 0; j = 0 }
    /* all whom it waits for have the round: it is committed, and acknowledged */
    :: atomic { select (i : 0 .. SERVERS - 1);
        if
        :: server[i].epoch > 0 && ROLE_PRIMARY(i) ->
            e = server[i].epoch;
            b = place[e].members & ~BIT(i);
            if
            :: server[i].counted && BUG != 5 -> b = b | BIT(place[e].joiner)
            :: else
            fi;
            if
            :: (b & ~server[i].level) == 0 || (BUG == 3 && (b & server[i].level) != 0) ->
                acknowledged = acknowledged | stamp_values[server[i].stamp];
                server[i].base = server[i].stamp;
                commits[AT(e, server[i].stamp)] = true;
                if /* the next round */
                :: server[i].values != stamp_values[server[i].stamp] && stamps < STAMPS ->
                    stamp_epoch[stamps] = e;
                    stamp_values[stamps] = server[i].values;
                    server[i].stamp = stamps;
                    stamps++;
                    server[i].level = 0;
                    sent[PREPARE(e, server[i].base, server[i].stamp)] = true
                :: else
                fi
            :: else
            fi
        :: else
        fi;
        i = 0; e = 0; b = 0;
        check() }
    /* somebody is behind: the round is read again, with all values as they are now */
    :: atomic { select (i : 0 .. SERVERS - 1);
        if
        :: server[i].epoch > 0 && ROLE_PRIMARY(i) ->
            e = server[i].epoch;
            if
            :: server[i].values != stamp_values[server[i].stamp] && stamps < STAMPS ->
                stamp_epoch[stamps] = e;
                stamp_values[stamps] = server[i].values;
                server[i].stamp = stamps;
                stamps++;
                server[i].level = 0;
                sent[PREPARE(e, server[i].base, server[i].stamp)] = true
            :: else
            fi;
            whole[AT(e, server[i].stamp)] = true
        :: else
        fi;
        i = 0; e = 0 }
    /* an answer comes */
    :: atomic { select (i : 0 .. SERVERS - 1);
        if
        :: server[i].epoch > 0 && ROLE_PRIMARY(i) ->
            server[i].level = server[i].level | has[AT(server[i].epoch, server[i].stamp)];
            e = server[i].epoch;
            if
            :: place[e].joiner != NOBODY && IN(server[i].level, place[e].joiner) ->
                server[i].counted = true;
                completes[e] = true
            :: else
            fi
        :: else
        fi;
        i = 0; e = 0 }

    /* --- members and joiners ----------------------------------------------------------- */
    /* PREPARE */
    :: atomic { select (i : 0 .. SERVERS - 1);
        e = server[i].epoch;
        if
        :: BUG == 2 && e > 1 -> e--
        :: true
        fi;
        if
        :: e > 0 && COPIES(i, e) && place[e].primary != i && !ROLE_PRIMARY(i) ->
            select (s : 0 .. stamps - 1);
            select (b : 0 .. stamps - 1)
        :: else -> s = STAMPS
        fi;
        if
        :: s < STAMPS && !(server[i].follows == e && s < TOP(i)) ->
            if
            :: (sent[PREPARE(e, b, s)] || whole[AT(e, s)]) && TOP(i) == s -> /* it is here */
                server[i].follows = e;
                has[AT(e, s)] = has[AT(e, s)] | BIT(i)
            :: sent[PREPARE(e, b, s)] && TOP(i) == b && TOP(i) != s ->
                server[i].installed = server[i].prepared;
                server[i].prepared = s;
                server[i].follows = e;
                has[AT(e, s)] = has[AT(e, s)] | BIT(i)
            :: sent[PREPARE(e, b, s)] && server[i].installed == b && TOP(i) != s ->
                server[i].prepared = s;
                server[i].follows = e;
                has[AT(e, s)] = has[AT(e, s)] | BIT(i)
            :: whole[AT(e, s)] && TOP(i) != s ->
                server[i].prepared = s;
                server[i].follows = e;
                has[AT(e, s)] = has[AT(e, s)] | BIT(i)
            :: else
            fi
        :: else
        fi;
        i = 0; e = 0; s = 0; b = 0;
        check() }
    /* COMMIT */
    :: atomic { select (i : 0 .. SERVERS - 1);
        if
        :: server[i].epoch > 0 && !ROLE_PRIMARY(i) && COPIES(i, server[i].epoch) &&
           commits[AT(server[i].epoch, TOP(i))] ->
            server[i].installed = server[i].prepared
        :: else
        fi;
        i = 0 }
    od
}
