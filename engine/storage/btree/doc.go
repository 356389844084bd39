// Package btree is the B+tree that holds every index: byte-string keys in
// bytes.Compare order, each with a flags byte and a value.
//
// A [Tree] is reached through a [Cursor], which works in a mini-transaction
// (package mtr) and holds the latch of one leaf. Changes of a leaf are made in
// place by the cursor and cannot fail; room for them is made beforehand by
// [Tree.MakeRoom], in mini-transactions of its own, and given back by
// [Tree.Shrink].
//
//	for {
//		m.Begin()
//		exact, err := c.SeekLeaf(key, mtr.X)
//		if c.Fits(len(key), len(value)) {
//			c.Insert(key, 0, value); c.Leave(); m.Commit(); break
//		}
//		c.Leave(); m.Commit()
//		t.MakeRoom(key, len(value))
//	}
//
// # A node
//
//	32   header: level, prefix length, count, heap top, garbage, run of inserts …
//	80   prefix: what all keys of the node start with, stored once
//	     heap: records {flags u8, value length u16, key after the prefix, value}
//	     gap
//	end  slots, growing downwards, in key order: {hint u32, offset u16, key length u16}
//
// The hint is the first four bytes of the key after the prefix and after the
// skipped bytes, those that all keys present happen to share besides (kept in the
// header), as a big-endian number: a search compares integers and looks at a record
// only on a tie. An inner node's values are page numbers; its slot 0 has no key and
// stands for the node's lower bound.
//
// # Invariants
//
//   - A node's bounds are the separators around it: lo <= key < hi. They are stored
//     in its ancestors only. The prefix is common to both bounds, hence to every key
//     that can ever come in; the outermost nodes have none on their open side.
//   - The root's page number never changes. Every leaf has the same depth.
//   - A node's key range changes only while its parent is latched in X. So whoever
//     holds a leaf and then finds the parent's version unchanged holds the right one.
//   - Nodes have no links to their neighbours: a cursor goes on by its leaf's bound.
//   - One structure change at a time and tree. Each is one mini-transaction on a
//     parent and one or two children, and leaves a sound tree behind.
//   - No byte of a page changes unlogged.
//
// # Latches
//
// Readers go down without latches (see buffer.Optimistic) or, failing that, latch
// by latch; they latch the leaf. Structure changes latch parent, then children from
// left to right. A cursor that moves on lets go of its leaf first. [Cursor.PeekNext]
// looks to the right under the latch, and never waits for a node above.
//
// The package does not know what keys and values mean, takes no transactional
// locks, and leaves delete-marked entries to its callers.
package btree
