// Included first by loops that must give the same floats on every processor
// ("The same seed gives the same bytes"): no multiplication is joined with the
// addition behind it, whatever the flags of the family say.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif
