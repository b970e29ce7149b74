// The one named construct for races that are wanted.
//
// "we access and update the shared model weights locally without using locks.
//  [...] This introduces some races as well as potentially modifying weights
//  based on stale weight values" (Adam 3.2.2)
//
// A function marked HOGWILD may load or store shared weights (and the optimizer
// state beside them) while other threads store them. Every such access is an
// aligned 32-bit float, which the machines we run on load and store whole, so a
// reader sees some thread's value, never a mixture; a lost addition is noise
// that training absorbs. Nothing else may race. In a ThreadSanitizer build the
// mark takes the function out of the checker's sight; everywhere else it is
// empty. Functions that it calls must be marked themselves.
#ifndef ADAM_CORE_HOGWILD_H
#define ADAM_CORE_HOGWILD_H

#if defined(__SANITIZE_THREAD__)
#define HOGWILD __attribute__((no_sanitize("thread"), noinline))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HOGWILD __attribute__((no_sanitize("thread"), noinline))
#endif
#endif
#ifndef HOGWILD
#define HOGWILD
#endif

#endif
