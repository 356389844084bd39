// Package pattern holds regular expressions in the syntax and with the meaning of ICU, which MySQL has.
//
// [Parse] reads a pattern into a tree. A tree that package regexp can match with the same answer gives its text in
// that package's syntax, by [Tree.GoSyntax], together with what subjects must not contain for the answers to be the
// same; that matcher needs time linear in the subject. All other patterns, and all other subjects, are for a [Program],
// a backtracking matcher: it alone does look-around, back references, atomic groups and possessive quantifiers.
//
// Invariants:
//
//   - A Tree and a Program are immutable once made and may be used by many tasks at once. What changes during a match is in a
//     [Machine], which belongs to one task at a time.
//   - A match is bounded: a Machine counts saved states and steps against [Limits] and asks its caller now and then
//     whether to go on. Its stack is accounted for before it grows.
//   - Nothing here recurses by the subject; recursion by the pattern is at most maxDepth deep.
//
// The package knows nothing of expressions, sessions and character sets: subjects and patterns are UTF-8.
package pattern
