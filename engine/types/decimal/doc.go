// Package decimal is exact decimal arithmetic for SQL's DECIMAL: up to 65
// significant digits, scale up to 30, rounding half away from zero.
//
// A [Decimal] is a 256-bit magnitude, a sign and a scale in one plain struct of
// 40 bytes: no operation allocates. Most work happens on the one or two limbs
// in use; a general big integer would have paid for a heap object each time.
//
// Invariants: the magnitude is below 10^76; zero is not negative.
//
// Intermediate results keep more digits than a column may: MySQL computes in
// nine words of nine digits, and so (1/3)*3 shows as 1.0000, not 0.9999. Here
// results hold up to 76 digits, beyond which fraction digits are cut off; an
// integer part of more than 65 digits is [ErrOverflow]. Callers round to the
// scale of the result's type.
//
// The package does not know columns, clients' error numbers or sessions.
package decimal
