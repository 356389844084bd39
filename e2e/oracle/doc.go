// Package oracle compares what statements give here with what they give in other databases.
//
// With MariaDB: random tables, random queries over them, the same rows. Where the two databases
// differ by design the generator stays away, and generate_test.go says why.
//
// With MySQL 9.7, whose dialect this is: statements of ten kinds over all types, sql_modes and
// collations (mysqlforms_test.go, mysqlgen_test.go, mysqlstmts_test.go). Rows, errors, types of
// columns and numbers of warnings are compared; a statement that differs is made smaller
// (mysqltree_test.go) and counted in the class that is left of it. Conditions are besides checked
// against themselves, without MySQL (mysqlself_test.go). docs/compatibility.md has the results.
package oracle
