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
	classString   // not a word: a string
)

// wordClasses holds the words by length.
var wordClasses = func() (t [18]map[string]wordClass) {
	for class, words := range map[wordClass][]string{
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
		classKeepCall: {"CHAR", "CHARACTER", "NCHAR", "BINARY", "DECIMAL", "DEC", "NUMERIC", "DATETIME", "FLOAT", "DOUBLE",
			"REAL", "YEAR", "VARCHAR", "NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURTIME",
			"CURRENT_TIME", "UTC_TIME", "UTC_TIMESTAMP", "SYSDATE", "ROUND", "TRUNCATE", "INDEX", "KEY"},
	} {
		for _, w := range words {
			if t[len(w)] == nil {
				t[len(w)] = map[string]wordClass{}
			}
			t[len(w)][w] = class
		}
	}
	return t
}()

// classify returns the class of a word.
func classify(w string) wordClass {
	if w[0] == '_' {
		return classKeepNext // an introducer
	}
	if len(w) >= len(wordClasses) || wordClasses[len(w)] == nil {
		return prefixed(w)
	}
	var u [len(wordClasses)]byte
	for i := 0; i < len(w); i++ {
		c := w[i]
		if c >= 'a' && c <= 'z' {
			c -= 32
		}
		u[i] = c
	}
	if class, ok := wordClasses[len(w)][string(u[:len(w)])]; ok {
		return class
	}
	return prefixed(w)
}

// prefixed finds functions by how their names begin.
func prefixed(w string) wordClass {
	if len(w) > 5 && foldEqual(w[:5], "JSON_") || len(w) > 7 && foldEqual(w[:7], "REGEXP_") {
		return classKeepCall
	}
	return classNone
}
