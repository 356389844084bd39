// Package types holds the values of the database: column types, single values,
// column vectors, the collation registry, and the three encodings of a value:
//
//   - the key form ([AppendKey]), in which bytes.Compare is the SQL order;
//   - the stored form ([AppendStored]), in which rows keep columns;
//   - the text form ([AppendText]), which clients see.
//
// Invariants:
//
//   - For values a, b of one type, the sign of bytes.Compare of their key forms
//     is that of [Compare], NULL first; with desc, its opposite.
//   - No key form is a proper prefix of another of the same type, so keys of
//     several parts are plain concatenations and compare part by part.
//   - Values read from a vector, a record or a key alias that memory. They stay
//     valid as long as it does not change; [Value.Clone] detaches one.
//   - [Context.Store] is the only way from a client's value to a column's: what
//     it returns satisfies the column's type, and everything else here may rely
//     on that.
//
// The package knows nothing of expressions, sessions, rows or pages. Collations
// other than binary live in types/collation, JSON documents in types/json; both
// register themselves here.
package types
