package collation

import (
	"compress/flate"
	_ "embed"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// earlierFile has three blocks: the weights of the two versions, and what languages have different.
//
//go:embed earlier.bin
var earlierFile string

// An earlierTable has the weights of one collation: by the upper bits of a code point a page, on which stands the number of its
// weights, and where they are; entryUnassigned are computed weights.
type earlierTable struct {
	limit   rune // characters from here on have no weights of their own
	pages   []*[256]uint32
	weights []uint16
	ascii   [utf8.RuneSelf]uint16 // each has one weight or none
	space   uint16
	heads   *[utf8.RuneSelf]bool // characters with which one of joins begins
	joins   []joined
}

// joined is a sequence of characters that weighs as one.
type joined struct {
	text  string
	entry uint32
}

// earlierCountShift is where an entry's number of weights begins.
const earlierCountShift = 24

func (t *earlierTable) entry(r rune) uint32 {
	if page := t.pages[r>>8]; page != nil {
		return page[r&0xFF]
	}
	return entryUnassigned
}

// join returns what s begins with of the sequences.
func (t *earlierTable) join(s []byte) *joined {
	for i := range t.joins {
		if j := &t.joins[i]; len(j.text) <= len(s) && j.text == string(s[:len(j.text)]) {
			return j
		}
	}
	return nil
}

// earlierSource makes a table at the first use. Collations of all character sets share it.
type earlierSource struct {
	block    int // of the version in the file
	language string
	joins    bool // some sequences of characters weigh as one
	once     sync.Once
	table    *earlierTable
}

func (s *earlierSource) load() *earlierTable {
	s.once.Do(s.unpack)
	return s.table
}

func (s *earlierSource) unpack() {
	if s.language == "" {
		s.table = unpackEarlier(earlierBlock(s.block))
		return
	}
	s.table = earlierLanguages[0].source.load().tailored(s.language)
}

// earlierLanguage is a collation's name without character set and case, and where its weights are.
type earlierLanguage struct {
	name   string
	source *earlierSource
}

// earlierLanguages are in the order of MySQL's numbers, which in each character set are consecutive.
var earlierLanguages = makeEarlierLanguages()

func makeEarlierLanguages() (all []earlierLanguage) {
	const version400, version520 = 0, 1
	all = append(all, earlierLanguage{"unicode", &earlierSource{block: version400}})
	for _, l := range strings.Fields("icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish lithuanian " +
		"slovak spanish2 roman persian esperanto hungarian sinhala german2 croatian") {
		joins := l == "czech" || l == "danish" || l == "lithuanian" || l == "slovak" || l == "spanish2" || l == "croatian"
		all = append(all, earlierLanguage{l, &earlierSource{block: version400, language: l, joins: joins}})
	}
	return append(all, earlierLanguage{"unicode_520", &earlierSource{block: version520}},
		earlierLanguage{"vietnamese", &earlierSource{block: version400, language: "vietnamese"}})
}

// earlierCollations are those of a character set. Their numbers begin at first.
func earlierCollations(cs types.Charset, first types.CollationID) (all []types.Collation) {
	for i, l := range earlierLanguages {
		all = append(all, earlier{meta{first + types.CollationID(i), cs.String() + "_" + l.name + "_ci", cs}, l.source})
	}
	return all
}

// keepKeys leaves those of these collations with the weights of version 9.0.0 that programs before the exact ones had: indexes on disk
// have their keys in that order.
func keepKeys(all []types.Collation) {
	for i, c := range all {
		if e, ok := c.(earlier); ok && slices.Contains([]types.CollationID{192, 224, 246}, e.id) {
			all[i] = ucaPad{ucaAI{e.meta}}
		}
	}
}

// earlierSourceOf returns where a language's weights are.
func earlierSourceOf(name string) *earlierSource {
	for _, l := range earlierLanguages {
		if l.name == name {
			return l.source
		}
	}
	return nil
}

// earlierBlock unpacks a block of the file.
func earlierBlock(n int) []byte {
	return unpackBlock(earlierFile, n)
}

// unpackBlock unpacks one of several compressed blocks that each have their length before them.
func unpackBlock(file string, n int) []byte {
	size := func() uint32 { return binary.LittleEndian.Uint32([]byte(file[:4])) }
	for range n {
		file = file[4+size():]
	}
	b, err := io.ReadAll(flate.NewReader(strings.NewReader(file[4 : 4+size()])))
	if err != nil {
		panic("collation: " + err.Error()) // the file is a part of the program
	}
	return b
}

// unpackEarlier reads a version's block: runs of code points, the number of weights of each, the weights.
func unpackEarlier(b []byte) *earlierTable {
	be := binary.BigEndian
	t := &earlierTable{limit: rune(be.Uint32(b))}
	t.pages = make([]*[256]uint32, t.limit>>8)
	const run = 6
	runs := b[6 : 6+run*int(be.Uint16(b[4:]))]
	b = b[6+len(runs):]
	listed := 0
	for r := runs; len(r) > 0; r = r[run:] {
		listed += int(be.Uint16(r[4:]))
	}
	counts, weights := b[:listed], b[listed:]
	t.weights = make([]uint16, len(weights)/2)
	for i := range t.weights {
		t.weights[i] = be.Uint16(weights[2*i:])
	}
	at := uint32(0)
	for ; len(runs) > 0; runs = runs[run:] {
		first, n := rune(be.Uint32(runs)), rune(be.Uint16(runs[4:]))
		for r := first; r < first+n; r++ {
			t.set(r, uint32(counts[0])<<earlierCountShift|at)
			at += uint32(counts[0])
			counts = counts[1:]
		}
	}
	t.space = t.ascii[' ']
	return t
}

func (t *earlierTable) set(r rune, entry uint32) {
	page := t.pages[r>>8]
	if page == nil {
		page = new([256]uint32)
		for i := range page {
			page[i] = entryUnassigned
		}
		t.pages[r>>8] = page
	}
	page[r&0xFF] = entry
	if r < utf8.RuneSelf {
		t.ascii[r] = 0
		if entry>>earlierCountShift > 0 {
			t.ascii[r] = t.weights[entry&(1<<earlierCountShift-1)]
		}
	}
}

// tailored returns a table with the weights of a language. It shares pages that are the same.
func (t *earlierTable) tailored(language string) *earlierTable {
	own := *t
	own.pages = append([]*[256]uint32(nil), t.pages...)
	own.weights = append([]uint16(nil), t.weights...)
	copied := map[rune]bool{}
	for b := earlierBlock(2); len(b) > 0; {
		name := string(b[1 : 1+b[0]])
		n := int(b[1+b[0]])
		b = b[2+b[0]:]
		for range n {
			text, weights := string(b[2:2+b[0]]), b[2+b[0]:2+int(b[0])+2*int(b[1])]
			entry := uint32(b[1])<<earlierCountShift | uint32(len(own.weights))
			b = b[2+len(text)+len(weights):]
			if name != language {
				continue
			}
			for ; len(weights) > 0; weights = weights[2:] {
				own.weights = append(own.weights, binary.BigEndian.Uint16(weights))
			}
			r, size := utf8.DecodeRuneInString(text)
			if size < len(text) {
				own.addJoined(text, entry)
				continue
			}
			if page := own.pages[r>>8]; page != nil && !copied[r>>8] {
				copy := *page
				own.pages[r>>8] = &copy
			}
			copied[r>>8] = true
			own.set(r, entry)
		}
	}
	return &own
}

// addJoined adds a sequence. They all begin with ASCII characters, which generated lists are known to have.
func (t *earlierTable) addJoined(text string, entry uint32) {
	if t.heads == nil {
		t.heads = new([utf8.RuneSelf]bool)
	}
	t.heads[text[0]] = true
	t.joins = append(t.joins, joined{text, entry})
}
