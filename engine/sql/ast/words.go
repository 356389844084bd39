package ast

// wordClass is what a word means to Normalize.
type wordClass uint8

const (
	classNone       wordClass = iota
	classSelect               // begins a select list
	classClause               // ends one, and ORDER BY and the like
	classWhere                // likewise, and a condition follows
	classKeepClause           // GROUP, ORDER, HAVING: literals stay
	classCondition            // a condition follows: a literal there stays
	classAnd                  // likewise, if it is not BETWEEN's
	classBetween
	classKeepNext // a literal after it, and those in brackets after it, stay
	classKeepText // a literal after it stays
	classKeepCall // literals in brackets after it stay
	classFile     // the text has no key: INTO OUTFILE
	classString   // not a word: a string
)

// classWords are the words of each class.
var classWords = map[wordClass][]string{
	classSelect: {"SELECT"},
	// Reserved words only: a name must not end a select list.
	classClause:     {"FROM", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "FOR", "INTO", "LOCK"},
	classWhere:      {"WHERE"},
	classKeepClause: {"GROUP", "ORDER", "HAVING", "WINDOW", "PARTITION"},
	classCondition:  {"ON", "OR", "NOT", "XOR"},
	classAnd:        {"AND"},
	classBetween:    {"BETWEEN"},
	classKeepNext: {"DATE", "TIME", "TIMESTAMP", "COLLATE", "SEPARATOR", "ESCAPE", "USING", "CHARSET", "LIKE", "REGEXP",
		"RLIKE"},
	classKeepText: {"AS"},
	classFile:     {"OUTFILE", "DUMPFILE"},
	classKeepCall: {"CHAR", "CHARACTER", "NCHAR", "BINARY", "DECIMAL", "DEC", "NUMERIC", "DATETIME", "FLOAT", "DOUBLE",
		"REAL", "YEAR", "VARCHAR", "NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURTIME",
		"CURRENT_TIME", "UTC_TIME", "UTC_TIMESTAMP", "SYSDATE", "ROUND", "TRUNCATE", "STR_TO_DATE", "INDEX", "KEY"},
}

// wordTable finds the class of a word by its length, first and last letter: lists of
// the words with the same hash, nearly always of one.
type wordTable [256][]classWord

type classWord struct {
	word  string
	class wordClass
}

func newWordTable(classes map[wordClass][]string) *wordTable {
	t := new(wordTable)
	for class, words := range classes {
		for _, w := range words {
			h := wordHash(w)
			t[h] = append(t[h], classWord{w, class})
		}
	}
	return t
}

func wordHash(w string) uint8 {
	return uint8(len(w))*41 + (w[0]&^32)*7 + (w[len(w)-1]&^32)*3
}

// find returns the class of a word, 0 if it has none. It allocates nothing.
func (t *wordTable) find(w string) wordClass {
	for _, c := range t[wordHash(w)] {
		if len(c.word) == len(w) && foldEqual(w, c.word) {
			return c.class
		}
	}
	return classNone
}

var normalWords = newWordTable(classWords)

// classify returns the class of a word.
func classify(w string) wordClass {
	if class := normalWords.find(w); class != classNone {
		return class
	}
	switch w[0] {
	case '_':
		return classKeepNext // an introducer
	case 'J', 'j':
		if len(w) > 5 && foldEqual(w[:5], "JSON_") {
			return classKeepCall
		}
	case 'R', 'r':
		if len(w) > 7 && foldEqual(w[:7], "REGEXP_") {
			return classKeepCall
		}
	}
	return classNone
}
