// Package collation holds MySQL's string orders and registers them with package types when it is linked in:
//
//   - utf8mb4_0900_ai_ci, utf8mb4_0900_as_cs: the Unicode Collation Algorithm 9.0.0 with its default table, NO PAD;
//   - utf8mb4_0900_as_ci and the utf8mb4_*_0900_* of languages: the same with a language's own letters;
//   - the kin of utf8mb4_unicode_ci, its languages and utf8mb3_unicode_520_ci: versions 4.0.0 and 5.2.0 of the algorithm, PAD SPACE;
//     utf8mb4_unicode_ci, utf8mb4_unicode_520_ci and utf8mb3_unicode_ci themselves stay at 9.0.0, by which indexes have their keys (keepKeys);
//   - utf8mb4_0900_bin: bytes, NO PAD;
//   - utf8mb4_general_ci, latin1_swedish_ci, ascii_general_ci: one weight per character, PAD SPACE;
//   - utf8mb4_bin, latin1_bin, ascii_bin: bytes, PAD SPACE;
//   - those of the other character sets of one byte a character: a table of weights each, PAD SPACE;
//   - those of ucs2, utf16, utf16le and utf32: texts are made UTF-8, whose collations compare them, PAD SPACE;
//   - those of the character sets of East Asia: weights of a character's bytes, an order of gbk's and gb18030's own, PAD SPACE.
//
// Invariants:
//
//   - Compare(a, b) == bytes.Compare(AppendSortKey(nil, a), AppendSortKey(nil, b)) for all byte strings, well-formed or not.
//   - AppendSortKeyHead, which the collations of the UCA have, appends the beginning of the sort key: sorting mostly needs no more.
//   - Compare(a, b) == 0 implies equal hashes. Hashes are the same in every process.
//   - Nothing allocates, except that AppendSortKey grows dst; the collations of Czech and Thai, of the forms of Unicode
//     but for UTF-8, and of East Asia do for strings of more than some hundred bytes.
//
// The weights come from tables that internal/gen writes; see DESIGN.md for where they follow MySQL rather than Unicode and for
// the form of the sort keys. The package does not change case, normalise, or match patterns.
package collation

//go:generate go run ./internal/gen -allkeys allkeys-9.0.0.txt -general testdata/general_ci.txt -dir .
