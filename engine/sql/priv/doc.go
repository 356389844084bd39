// Package priv holds accounts, roles and privileges: how the tables of schema mysql
// become a set that checks can be asked of (Load), how a statement changes it (the
// methods of Set), what has to be written back (Diff), and how it is shown (Grants).
//
//	set, err := priv.Load(tables)
//	who := set.Active(priv.ID{Name: "app", Host: "%"}, roles)
//	err = who.Table("shop", "orders", priv.Select, "SELECT")
//
// # Invariants
//
//   - A Set that checks are asked of is never changed: a statement changes a copy, whose
//     rows are written in its transaction, and every node loads the tables again after the
//     commit.
//   - Load(rows of a Set) equals the Set.
//   - What the tables say of an account acts on every node, whatever its variables are; a node's variables
//     (mandatory_roles, partial_revokes) say what the set is arranged with when it is loaded.
//   - What a check needs is one lookup of the account's compiled privileges, roles
//     included; nothing is searched that the account has no privileges on.
//
// # What it does not do
//
// It opens no tables and makes no transactions: the session does. It knows no network:
// who a client is, server/auth finds out, with the hashes of this package.
package priv
