package types

import (
	"bytes"
	"fmt"
	"strings"
)

// CollationID is MySQL's number of a collation; it is stored in the catalogue.
type CollationID uint16

// The collations that the engine names itself.
const (
	CollationNone          CollationID = 0 // not a string type
	CollationLatin1Swedish CollationID = 8
	CollationASCIIGeneral  CollationID = 11
	CollationUTF8MB3Gen    CollationID = 33
	CollationUTF8MB4Gen    CollationID = 45
	CollationUTF8MB4Bin    CollationID = 46
	CollationLatin1Bin     CollationID = 47
	CollationBinary        CollationID = 63
	CollationASCIIBin      CollationID = 65
	CollationUTF8MB3Bin    CollationID = 83
	CollationUTF8MB40900AI CollationID = 255 // utf8mb4_0900_ai_ci, the default
	CollationUTF8MB40900AS CollationID = 278 // utf8mb4_0900_as_cs
	CollationUTF8MB40900B  CollationID = 309 // utf8mb4_0900_bin
)

// Collation orders the strings of one character set. Implementations are
// immutable, safe for concurrent use and do not allocate beyond growing dst.
// Strings are bytes in the collation's character set; an implementation must
// give a total order on malformed bytes too.
type Collation interface {
	ID() CollationID
	Name() string // MySQL's name, lower case
	Charset() Charset

	// Compare returns -1, 0 or +1.
	Compare(a, b []byte) int

	// AppendSortKey appends the weights of s: for all a and b, bytes.Compare
	// of their sort keys equals Compare(a, b), PAD SPACE included. A sort key
	// may be a prefix of another and may hold any byte.
	AppendSortKey(dst, s []byte) []byte

	// Hash is equal for strings that compare equal. It is the same in every
	// process, so that it may take part in plans and spill files.
	Hash(seed uint64, s []byte) uint64

	// PadSpace reports whether trailing spaces are insignificant.
	PadSpace() bool

	// Lossless reports whether the sort key of s is s itself.
	Lossless() bool

	// MaxKeyLen bounds the length of the sort key of a string of n bytes.
	MaxKeyLen(n int) int
}

// A Beginner is a collation of one level of weights, which can tell whether one string begins with another.
type Beginner interface {
	// BeginsWith reports whether the weights of s begin with those of head, trailing spaces of both included, and how many bytes of s it has
	// read. The last weight of head may be the first of several that a character of s has.
	BeginsWith(s, head []byte) (begins bool, read int)
}

// maxCollations bounds the ids: MySQL's own are below 1024, user-defined ones
// go up to 2047.
const maxCollations = 2048

// The registry is written by init functions only and read without locks after.
var (
	collationsByID   [maxCollations]Collation
	collationsByName = map[string]Collation{}
)

// RegisterCollation adds c. It is called from init functions only, so that
// lookups need no lock. It panics when the id or the name is taken.
func RegisterCollation(c Collation) {
	id, name := c.ID(), strings.ToLower(c.Name())
	if id == CollationNone || int(id) >= maxCollations {
		panic(fmt.Sprintf("types: collation %s has invalid id %d", name, id))
	}
	if collationsByID[id] != nil || collationsByName[name] != nil {
		panic(fmt.Sprintf("types: collation %s (%d) registered twice", name, id))
	}
	collationsByID[id] = c
	collationsByName[name] = c
}

// CollationByID returns nil when there is no such collation.
func CollationByID(id CollationID) Collation {
	if int(id) >= maxCollations {
		return nil
	}
	return collationsByID[id]
}

// CollationByName ignores case, and takes utf8_ for utf8mb3_; it returns nil when there is no such collation.
func CollationByName(name string) Collation {
	if c := collationsByName[name]; c != nil {
		return c
	}
	name = strings.ToLower(name)
	if rest, ok := strings.CutPrefix(name, "utf8_"); ok {
		name = "utf8mb3_" + rest
	}
	return collationsByName[name]
}

func init() { RegisterCollation(binaryCollation{}) }

// binaryCollation compares bytes; it is the collation of BINARY and BLOB.
type binaryCollation struct{}

func (binaryCollation) ID() CollationID                    { return CollationBinary }
func (binaryCollation) Name() string                       { return "binary" }
func (binaryCollation) Charset() Charset                   { return CharsetBinary }
func (binaryCollation) Compare(a, b []byte) int            { return bytes.Compare(a, b) }
func (binaryCollation) AppendSortKey(dst, s []byte) []byte { return append(dst, s...) }
func (binaryCollation) Hash(seed uint64, s []byte) uint64  { return HashBytes(seed, s) }
func (binaryCollation) PadSpace() bool                     { return false }
func (binaryCollation) Lossless() bool                     { return true }
func (binaryCollation) MaxKeyLen(n int) int                { return n }

// A Caser is a collation with capital and small letters of its own, other than those of its character set.
type Caser interface {
	Cases() (upper, lower *[256]uint8)
}

// A Contractor is a collation in which several ASCII characters may have a weight together.
type Contractor interface {
	Contracts() bool
}

// Contracts reports whether several ASCII characters may have a weight together.
func Contracts(c Collation) bool {
	k, ok := c.(Contractor)
	return ok && k.Contracts()
}

// OneLevel is a collation that may say of itself that the sort key of a string begins with those of the string's beginnings, but for
// what ends a key.
type OneLevel interface {
	OneLevel() bool
}

// Recoded is a collation of a wide character set.
type Recoded interface {
	// InUTF8 returns the collation of UTF-8 with the same order.
	InUTF8() Collation
}

// ExactLike is a collation in which LIKE takes characters of several bytes for equal only if they are the same.
type ExactLike interface {
	LikeIsExact() bool
}
