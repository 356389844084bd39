package expr

import (
	"time"
	"unsafe"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// SQLMode is the set of sql_mode flags that matter to expressions and not to
// conversions to columns (those are [types.Mode]).
type SQLMode uint16

// The flags, named after sql_mode's. ModeNoUnsignedSubtraction changes result types
// and counts when an expression is bound; the others count when it runs.
const (
	ModeErrorForDivisionByZero SQLMode = 1 << iota
	ModeNoUnsignedSubtraction
	ModeNoBackslashEscapes
	ModePadCharToFullLength
)

// SessionInfo is what expressions ask of the session.
type SessionInfo interface {
	ConnectionID() uint64
	User() string        // as the client gave it, name@host
	CurrentUser() string // the account, name@host
	// Strength is VALIDATE_PASSWORD_STRENGTH().
	Strength(password string) int64
	CurrentRole() string // "NONE" without
	Schema() string      // "" if none is chosen
	Version() string
	LastInsertID() uint64
	SetLastInsertID(uint64) // LAST_INSERT_ID(n)
	RowCount() int64        // of the statement before
	FoundRows() uint64

	// SystemVariable returns a system variable's value for @@name.
	SystemVariable(name string, global bool) (types.Value, *types.Type, error)

	// UserVariable returns the value of @name; its type is nil if it was never set.
	UserVariable(name string) (types.Value, *types.Type)
	// SetUserVariable copies what it keeps. A nil type unsets.
	SetUserVariable(name string, v types.Value, t *types.Type) error

	// StatementDigest is STATEMENT_DIGEST(text), or with text STATEMENT_DIGEST_TEXT(text). Error: 3676.
	StatementDigest(text string, asText bool) (string, error)
	// ThreadID is the number that performance_schema.threads gives a connection; ok is false if there is no such connection.
	ThreadID(connection uint64) (id uint64, ok bool)
	// LoadFile is LOAD_FILE(name): nil if there is no such file that the session may read.
	LoadFile(name string) ([]byte, error)

	// GetLock takes a named lock: 1 taken, 0 timed out. A negative timeout waits
	// for ever.
	GetLock(name string, timeout time.Duration) (int64, error)
	ReleaseLock(name string) (released, exists bool, err error)
	ReleaseAllLocks() (int64, error)
	LockHolder(name string) (connection uint64, held bool, err error)

	// Sleep waits; it reports whether it was interrupted.
	Sleep(d time.Duration) (interrupted bool, err error)

	// WaitForGTIDs waits until the sets of transactions are applied: 0, or 1 when
	// the time ran out. A timeout of 0 waits for ever.
	WaitForGTIDs(set string, timeout time.Duration) (int64, error)
}

// Context is what evaluation needs of the statement. It belongs to one session at
// a time and is kept from statement to statement for its memory.
type Context struct {
	types.Context // conversions to columns; Mode, Location, Warn

	SQLMode SQLMode
	// DataChange says that the statement changes data: in strict mode bad values
	// are then errors and not warnings. With IGNORE it is false.
	DataChange bool
	// Ignore says that the statement has IGNORE.
	Ignore bool

	Now     time.Time // when the statement began, for NOW()
	Env     env.Env   // clock and random numbers, for SYSDATE(), RAND(), UUID()
	Session SessionInfo
	Params  []types.Value // values of [Param]

	// Collation is collation_connection: that of text made of numbers and dates.
	Collation             types.CollationID
	DivPrecisionIncrement int // of division at run time; 4 by default
	DefaultWeekFormat     int
	GroupConcatMaxLen     uint64
	MaxAllowedPacket      uint64
	// Memory accounts for what aggregates and functions keep: it is called with
	// what is added or, negative, given back. Nil does not count.
	Memory func(delta int64) error
	// Hold accounts for large values: it is called with the bytes that one is about to
	// take or, negative, that have become free. Nil does not count.
	Hold func(delta int64) error
	// Interrupted is asked now and then by what takes long; nil never interrupts.
	Interrupted func() error

	work     int   // since the last check
	grown    bool  // a vector became large
	held     int64 // of large values in scratch memory
	ahead    int   // of it, for the value that a call is about to make
	kept     int64 // of those in vectors, which have their memory until the statement's end
	arena    []byte
	chunk    int
	args     []types.Value
	vectors  [maxClass][]*types.Vector
	sels     [][]uint32
	states   map[any]any
	builder  *json.Builder
	limits   *limits
	comparer *jsonComparer
	lists    [][]*types.Vector

	folding bool // constants are evaluated while the statement is bound
}

const maxClass = int(types.ClassJSON) + 1

// Mark is a place in the scratch memory.
type Mark struct {
	chunk, n int
	held     int64
}

// Mark returns the place up to which scratch memory is in use.
func (x *Context) Mark() Mark { return Mark{x.chunk, len(x.arena), x.held} }

// Release gives up all results made since m, but for those of
// [types.Context.Store].
func (x *Context) Release(m Mark) {
	if m.chunk != x.chunk {
		m.n = 0 // what lay before the mark is in a chunk of its own
	}
	x.arena = x.arena[:m.n]
	if x.held > m.held {
		x.free(&x.held, m.held)
	}
}

// ResetStatement forgets what belongs to one statement: scratch memory and the
// states of functions.
func (x *Context) ResetStatement() {
	x.Release(Mark{chunk: -1})
	x.Context.Reset()
	x.free(&x.kept, 0)
	x.forget()
	clear(x.args)
	x.args = x.args[:0]
	x.trim()
}

const (
	// keepBytes is up to which size scratch memory, and up to which size together vectors
	// outlive a statement.
	keepBytes = 1 << 20
	// keepEntries is up to how many arguments and states have a place for the next one.
	keepEntries = 1 << 10
)

// forget gives up what functions keep for the statement.
func (x *Context) forget() {
	if len(x.states) > keepEntries {
		x.states = nil
	}
	clear(x.states)
}

// Shed gives up, at a statement's end, memory that only this one needed. Results made are
// good until the next begins.
func (x *Context) Shed() {
	x.forget()
	x.free(&x.held, 0)
	x.free(&x.kept, 0)
	if x.grown || cap(x.arena) > keepBytes {
		x.trim()
	}
}

// trim gives up what one statement needed much of.
func (x *Context) trim() {
	x.grown = false
	if cap(x.arena) > keepBytes {
		x.chunk++
		x.arena = nil
	}
	if cap(x.args) > keepEntries {
		x.args = nil
	}
	kept := int64(0)
	for c := range x.vectors {
		free := x.vectors[c]
		keep := free[:0]
		for _, v := range free {
			if n := v.MemoryBytes(); kept+n <= keepBytes {
				kept += n
				keep = append(keep, v)
			}
		}
		clear(free[len(keep):])
		x.vectors[c] = keep
	}
}

const chunkBytes = 4 << 10

// Scratch lends an empty buffer in scratch memory. What was appended to it is kept
// by [Context.Keep]; only one buffer may be on loan at a time.
func (x *Context) Scratch() []byte {
	if cap(x.arena)-len(x.arena) < 256 {
		x.chunk++
		x.arena = make([]byte, 0, max(chunkBytes, min(2*cap(x.arena), 1<<20)))
	}
	n := len(x.arena)
	return x.arena[n:n]
}

// Keep takes back the buffer that Scratch lent, with what was appended. It returns
// the bytes, which are good until [Context.Release].
func (x *Context) Keep(b []byte) []byte {
	n := len(x.arena)
	if n < cap(x.arena) && cap(b) > 0 && unsafe.SliceData(b) == unsafe.SliceData(x.arena[n:n+1]) {
		x.arena = x.arena[:n+len(b)]
	} else if cap(b) > cap(x.arena) {
		x.chunk++
		x.arena = b
	}
	return b[:len(b):len(b)]
}

// Copy returns a copy of b in scratch memory.
func (x *Context) Copy(b []byte) []byte { return x.Keep(append(x.Scratch(), b...)) }

// vector lends an empty vector of type t, which putVector takes back.
func (x *Context) vector(t *types.Type) *types.Vector {
	free := &x.vectors[t.Class()]
	if n := len(*free); n > 0 {
		v := (*free)[n-1]
		*free = (*free)[:n-1]
		v.Init(t)
		return v
	}
	return types.NewVector(t, types.BatchRows)
}

func (x *Context) putVector(v *types.Vector) {
	x.grown = x.grown || v.MemoryBytes() > keepBytes
	free := &x.vectors[v.Class()]
	*free = append(*free, v)
}

// selection lends an empty list of rows, which putSelection takes back.
func (x *Context) selection() []uint32 {
	if n := len(x.sels); n > 0 {
		s := x.sels[n-1]
		x.sels = x.sels[:n-1]
		return s[:0]
	}
	return make([]uint32, 0, types.BatchRows)
}

func (x *Context) putSelection(s []uint32) { x.sels = append(x.sels, s) }

// State returns what a function keeps for one statement under a key, usually its
// *Call; make is called the first time.
func (x *Context) State(key any, make func() any) any {
	if s, ok := x.states[key]; ok {
		return s
	}
	if x.states == nil {
		x.states = map[any]any{}
	}
	s := make()
	x.states[key] = s
	return s
}

// Check returns the error of an interrupted statement.
func (x *Context) Check() error {
	if x.Interrupted == nil {
		return nil
	}
	return x.Interrupted()
}

// workBetweenChecks is after how much work, in bytes looked at or what takes as long, a
// function asks whether its statement was interrupted: some milliseconds.
const workBetweenChecks = 1 << 20

// Worked counts work of a function that may take long for one row, and returns the error of
// an interrupted statement.
func (x *Context) Worked(n int) error {
	if x.work += n; x.work < workBetweenChecks {
		return nil
	}
	x.work = 0
	return x.Check()
}

// Account counts memory that is kept beyond the scratch memory.
func (x *Context) Account(delta int64) error {
	if x.Memory == nil {
		return nil
	}
	return x.Memory(delta)
}

// largeValue is from which length on a value is accounted for, in bytes. Smaller ones are
// within what each session has anyway.
const largeValue = 256 << 10

// Large accounts for a value of n bytes that is about to be made in scratch memory, until
// that is released. Error: 3170 if the node has no room for it.
func (x *Context) Large(n int) error { return x.hold(&x.held, n) }

// Held reports whether large values are in scratch memory.
func (x *Context) Held() bool { return x.held > 0 }

func (x *Context) hold(count *int64, n int) error {
	if n < largeValue || x.Hold == nil {
		return nil
	}
	if err := x.Hold(int64(n)); err != nil {
		return err
	}
	*count += int64(n)
	return nil
}

// free gives back what is counted beyond n bytes.
func (x *Context) free(count *int64, n int64) {
	if *count > n {
		_ = x.Hold(n - *count) // what is given back is never refused
		*count = n
	}
}

// AppendTo appends a value to a vector. Error: 3170, like [Context.Large].
func (x *Context) AppendTo(out *types.Vector, v types.Value) error {
	if n := len(v.Bytes()); n >= largeValue {
		if err := x.extend(out, n); err != nil {
			return err
		}
	}
	out.Append(v)
	return nil
}

// AppendBehind appends one of many values that are small each and large together; sum is how many bytes they have, which it
// counts. Error: 3170.
func (x *Context) AppendBehind(out *types.Vector, v types.Value, sum *int) error {
	n := len(v.Bytes())
	if *sum += n; *sum >= largeValue && x.Hold != nil {
		arena := out.BytesBuffer()
		if more := len(arena) + n - cap(arena); more > 0 {
			more = max(more, cap(arena)/4) // as append lets it grow
			if err := x.Hold(int64(more)); err != nil {
				return err
			}
			x.kept += int64(more)
		}
	}
	out.Append(v)
	return nil
}

// Keeps accounts for n bytes of a value that is kept until the statement's end. Error: 3170.
func (x *Context) Keeps(n int) error { return x.hold(&x.kept, n) }

// extend accounts for the memory by which a vector of strings grows for n more bytes.
func (x *Context) extend(out *types.Vector, n int) error {
	arena := out.BytesBuffer()
	return x.hold(&x.kept, len(arena)+n-cap(arena))
}

// during counts memory that work takes and gives back. Errors: 3170, and those of work.
func (x *Context) during(bytes int64, work func() error) error {
	if err := x.Account(bytes); err != nil {
		return err
	}
	err := work()
	if e := x.Account(-bytes); err == nil {
		err = e
	}
	return err
}

// Warning hands a warning to the statement.
func (x *Context) Warning(e *sqlerr.Error) {
	if x.Warn != nil {
		x.Warn(e)
	}
}

// Fault is a warning, or the error it returns if the statement changes data in
// strict mode.
func (x *Context) Fault(e *sqlerr.Error) error {
	if x.DataChange && x.Mode&types.ModeStrict != 0 {
		return e
	}
	x.Warning(e)
	return nil
}

func (x *Context) location() *time.Location {
	if x.Location == nil {
		return time.UTC
	}
	return x.Location
}

// vectorList lends a list for n vectors, which putVectorList takes back.
func (x *Context) vectorList(n int) []*types.Vector {
	if k := len(x.lists); k > 0 && cap(x.lists[k-1]) >= n {
		l := x.lists[k-1]
		x.lists = x.lists[:k-1]
		return l[:n]
	}
	return make([]*types.Vector, n, max(n, 4))
}

func (x *Context) putVectorList(l []*types.Vector) {
	clear(l) // the vectors may be given up before the list is used again
	x.lists = append(x.lists, l)
}

// dropArgs takes arguments back, from the given one on. What they alias can go then.
func (x *Context) dropArgs(base int) {
	clear(x.args[base:])
	x.args = x.args[:base]
}
