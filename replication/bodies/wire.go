package bodies

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

// Kinds of questions and of bulk streams.
const (
	askOffer   = "large-offer"  // leader to member: there is something to fetch
	askHave    = "large-have"   // member to leader: so far I have it
	askWant    = "large-want"   // leader to member: receive what you have refused, I cannot commit without
	bulkStream = "large-stream" // the running transactions of a leader
	bulkBody   = "large-body"   // one whole body
)

// wireVersion is the first byte of every question and request.
const wireVersion = 1

const (
	maxData    = 512 << 10 // bytes of a body in one message
	maxAfters  = 4096      // frames that end in one message
	maxListed  = 2048      // streams in one request
	pointsKept = 32        // places at which a stream can go on
)

// errMalformed says that a message is not what it should be.
var errMalformed = errors.New("bodies: malformed message")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// reader reads fixed fields. What lies behind the end is zero, and err is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, n)
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte  { return r.take(1)[0] }
func (r *reader) u16() int    { return int(binary.LittleEndian.Uint16(r.take(2))) }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// length is an offset or a length: not negative, and sums of some do not overflow.
func (r *reader) length() int64 {
	n := r.u64()
	if n >= 1<<60 {
		r.bad = true
		return 0
	}
	return int64(n)
}

func (r *reader) body() entry.LargeBody {
	b := r.take(entry.LargeSize)
	if r.bad {
		return entry.LargeBody{}
	}
	l, err := entry.ParseLargeBody(b)
	r.bad = err != nil
	return l
}

// version begins a question or a request.
func (r *reader) version() { r.bad = r.byte() != wireVersion || r.bad }

// end says whether everything was read and right.
func (r *reader) end() error {
	if r.bad || len(r.b) > 0 {
		return errMalformed
	}
	return nil
}

func appendUints(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// offer is the question large-offer.
type offer struct{ term, start uint64 }

func (o offer) append(b []byte) []byte { return appendUints(append(b, wireVersion), o.term, o.start) }

func parseOffer(b []byte) (o offer, err error) {
	r := reader{b: b}
	r.version()
	o = offer{r.u64(), r.u64()}
	return o, r.end()
}

// wanted is the question large-want.
type wanted struct{ term, start, number uint64 }

func (w wanted) append(b []byte) []byte {
	return appendUints(append(b, wireVersion), w.term, w.start, w.number)
}

func parseWanted(b []byte) (w wanted, err error) {
	r := reader{b: b}
	r.version()
	w = wanted{r.u64(), r.u64(), r.u64()}
	return w, r.end()
}

// point is the end of a frame.
type point struct {
	at    int64
	chain uint32 // checksum of the frame
}

// listed is what a member has of one stream.
type listed struct {
	number uint64
	skip   bool // the member does not want it
	whole  bool // it has all of it, synced
	synced int64
	points []point // falling
}

const (
	flagSkip = 1 << iota
	flagWhole
)

// list is the request large-stream.
type list struct {
	term   uint64 // of the streams
	leader uint64 // start of the leader's process
	start  uint64 // start of the member's process
	have   []listed
}

func (l *list) append(b []byte) []byte {
	b = appendUints(append(b, wireVersion), l.term, l.leader, l.start)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(l.have)))
	for i := range l.have {
		h := &l.have[i]
		var flags byte
		if h.skip {
			flags |= flagSkip
		}
		if h.whole {
			flags |= flagWhole
		}
		b = append(appendUints(b, h.number, uint64(h.synced)), flags, byte(len(h.points)))
		for _, p := range h.points {
			b = binary.LittleEndian.AppendUint32(appendUints(b, uint64(p.at)), p.chain)
		}
	}
	return b
}

func parseList(b []byte) (l list, err error) {
	r := reader{b: b}
	r.version()
	l.term, l.leader, l.start = r.u64(), r.u64(), r.u64()
	n := r.u32()
	if n > maxListed {
		return l, errMalformed
	}
	for ; n > 0 && !r.bad; n-- {
		h := listed{number: r.u64(), synced: r.length()}
		flags, points := r.byte(), int(r.byte())
		h.skip, h.whole = flags&flagSkip != 0, flags&flagWhole != 0
		if flags&^(flagSkip|flagWhole) != 0 || points > pointsKept {
			r.bad = true
		}
		for ; points > 0 && !r.bad; points-- {
			h.points = append(h.points, point{r.length(), r.u32()})
		}
		l.have = append(l.have, h)
	}
	return l, r.end()
}

// having says how much of a stream a member has.
type having struct {
	number uint64
	synced int64
	whole  bool
}

// report is the question large-have.
type report struct {
	leader, start uint64 // of the processes
	have          []having
}

func (h *report) append(b []byte) []byte {
	b = appendUints(append(b, wireVersion), h.leader, h.start)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h.have)))
	for _, v := range h.have {
		b = appendUints(b, v.number, uint64(v.synced))
		if v.whole {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b
}

func parseReport(b []byte) (h report, err error) {
	r := reader{b: b}
	r.version()
	h.leader, h.start = r.u64(), r.u64()
	n := r.u32()
	if n > maxListed {
		return h, errMalformed
	}
	for ; n > 0 && !r.bad; n-- {
		v := having{number: r.u64(), synced: r.length()}
		whole := r.byte()
		v.whole = whole == 1
		r.bad = r.bad || whole > 1
		h.have = append(h.have, v)
	}
	return h, r.end()
}

// request is the request large-body.
type request struct {
	want  entry.LargeBody
	index uint64 // of the entry in the log
	at    int64  // from where on
}

func (q *request) append(b []byte) []byte {
	return appendUints(entry.AppendLargeBody(append(b, wireVersion), &q.want), q.index, uint64(q.at))
}

func parseRequest(b []byte) (q request, err error) {
	r := reader{b: b}
	r.version()
	q.want, q.index, q.at = r.body(), r.u64(), r.length()
	if q.at > q.want.Stored {
		r.bad = true
	}
	return q, r.end()
}

// kind is the kind of a message in large-stream, each a chunk of bulk:
//
//	 0  1  kind
//	 1  4  CRC-32C of the kind and of what follows, but for a body's bytes
//	 5  8  number of the stream, 0 in a hello
//	13     fields
//
// A body's bytes have their frames' checksums.
type kind uint8

const (
	msgHello    kind = 1 + iota // term, leader's start, the oldest number that runs
	msgBegin                    // a new stream
	msgData                     // offset, count of frames that end in it, their Afters, bytes
	msgTruncate                 // count of frames that stay, and their length
	msgComplete                 // what the body is
	msgEnd                      // why, the oldest number that runs
	kinds
)

// Why a stream ends.
const (
	endDropped = iota // the transaction was rolled back
	endTaken          // it is in the log
)

const messageHead = 1 + 4 + 8

// beginMessage appends the head of a message, without its checksum.
func beginMessage(b []byte, k kind, number uint64) []byte {
	b = append(b, byte(k), 0, 0, 0, 0)
	return appendUints(b, number)
}

// seal puts the checksum of the fields in.
func seal(b []byte, fields int) {
	binary.LittleEndian.PutUint32(b[1:], messageSum(b, fields))
}

func messageSum(b []byte, fields int) uint32 {
	return crc32.Update(crc32.Checksum(b[:1], castagnoli), castagnoli, b[5:fields])
}

// message is a message that was received. Slices are parts of the chunk.
type message struct {
	kind   kind
	number uint64

	term, start, oldest uint64 // hello; end: oldest

	at     int64 // data, truncate
	frames int   // truncate
	afters []byte
	data   []byte

	body entry.LargeBody // complete
	why  byte            // end
}

// after returns the After of the i-th frame that ends in the data.
func (m *message) after(i int) (uint64, bool) {
	if 8*i >= len(m.afters) {
		return 0, false
	}
	return binary.LittleEndian.Uint64(m.afters[8*i:]), true
}

func parseMessage(b []byte) (m message, err error) {
	r := reader{b: b}
	m.kind = kind(r.byte())
	sum := r.u32()
	m.number = r.u64()
	switch m.kind {
	case msgHello:
		m.term, m.start, m.oldest = r.u64(), r.u64(), r.u64()
	case msgBegin:
	case msgData:
		m.at = r.length()
		n := r.u16()
		if n > maxAfters {
			return m, errMalformed
		}
		m.afters = r.take(8 * n)
		m.data, r.b = r.b, nil
		if len(m.data) == 0 || len(m.data) > maxData {
			return m, errMalformed
		}
	case msgTruncate:
		frames := r.u64()
		m.frames, m.at = int(frames), r.length()
		r.bad = r.bad || frames > maxFrames
	case msgComplete:
		m.body = r.body()
	case msgEnd:
		m.why, m.oldest = r.byte(), r.u64()
		r.bad = r.bad || m.why > endTaken
	default:
		return m, fmt.Errorf("%w of kind %d", errMalformed, m.kind)
	}
	if err := r.end(); err != nil {
		return m, err
	}
	if messageSum(b, len(b)-len(m.data)) != sum {
		return m, fmt.Errorf("%w: wrong checksum", errMalformed)
	}
	return m, nil
}
