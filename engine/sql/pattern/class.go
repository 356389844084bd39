package pattern

import (
	"strings"
	"sync"
	"unicode"
)

// The classes that have an escape or a name of POSIX, and what they are within brackets in the syntax of package regexp.
const (
	lineEndsText = `\n-\r\x{85}\x{2028}\x{2029}`
	digitText    = `\p{Nd}`
	spaceText    = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	wordText     = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}`
	blankText    = `\t\p{Zs}`
)

// lazySet is a set that is made when it is first asked for.
type lazySet func() *Set

func tables(text string, list ...*unicode.RangeTable) lazySet {
	return sync.OnceValue(func() *Set {
		s := setOfTables(list...)
		s.text = text
		return s
	})
}

func ranges(text string, list ...rune) lazySet {
	return sync.OnceValue(func() *Set {
		s := newSet(list...).done()
		s.text = text
		return s
	})
}

var (
	lineEnds   = ranges(lineEndsText, '\n', '\r', 0x85, 0x85, 0x2028, 0x2029)
	digits     = tables(digitText, unicode.Nd)
	spaces     = tables(spaceText, unicode.White_Space)
	alphabetic = tables("", unicode.L, unicode.Nl, unicode.Other_Alphabetic)
	blanks     = sync.OnceValue(func() *Set {
		s := setOfTables(unicode.Zs)
		s.addRange('\t', '\t')
		s.done()
		s.text = blankText
		return s
	})
	wordRunes = sync.OnceValue(func() *Set {
		s := setOfTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc)
		s.addRange(0x200c, 0x200d)
		s.done()
		s.text = wordText
		return s
	})
	// extends are the characters that \b looks past: those that belong to the one before, and format characters.
	extends = sync.OnceValue(func() *Set {
		s := setOfTables(unicode.Mn, unicode.Me, unicode.Other_Grapheme_Extend, unicode.Cf)
		return s.done()
	})
	anyRune = ranges("", 0, unicode.MaxRune)
)

// escapeSet returns the set of \d, \w, \s, \h, \v and their negations, or nil.
func escapeSet(c rune) *Set {
	var s *Set
	switch unicode.ToLower(c) {
	case 'd':
		s = digits()
	case 'w':
		s = wordRunes()
	case 's':
		s = spaces()
	case 'h':
		s = blanks()
	case 'v':
		s = lineEnds()
	default:
		return nil
	}
	if unicode.IsUpper(c) {
		text := s.text
		if s = s.negated(); text != "" {
			s.text = "^" + text
		}
	}
	return s
}

// namedSets are the classes that have names besides those of Unicode, by their [looseName].
var namedSets = map[string]lazySet{
	"any": anyRune, "all": anyRune, "ascii": ranges("", 0, 0x7f), "word": wordRunes,
	"alphabetic": alphabetic, "alpha": alphabetic, "digit": digits, "space": spaces, "whitespace": spaces, "wspace": spaces, "blank": blanks,
	"uppercase": tables("", unicode.Lu, unicode.Other_Uppercase), "upper": tables("", unicode.Lu, unicode.Other_Uppercase),
	"lowercase": tables("", unicode.Ll, unicode.Other_Lowercase), "lower": tables("", unicode.Ll, unicode.Other_Lowercase),
	"punct": tables("", unicode.P), "cntrl": tables("", unicode.Cc),
	"xdigit": sync.OnceValue(func() *Set {
		s := setOfTables(unicode.Nd)
		s.addSet(setOfTables(unicode.Hex_Digit))
		return s.done()
	}),
	"alnum": tables("", unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.Nd),
	"graph": sync.OnceValue(func() *Set { return notGraph().negated() }),
	"print": sync.OnceValue(func() *Set {
		s := notGraph().negated()
		s.addSet(setOfTables(unicode.Zs))
		return s.done().without(setOfTables(unicode.Cc))
	}),
	"lc":            tables("", unicode.Lu, unicode.Ll, unicode.Lt),
	"casedletter":   tables("", unicode.Lu, unicode.Ll, unicode.Lt),
	"assigned":      sync.OnceValue(func() *Set { return assigned() }),
	"cn":            sync.OnceValue(func() *Set { return assigned().negated() }),
	"unassigned":    sync.OnceValue(func() *Set { return assigned().negated() }),
	"c":             sync.OnceValue(others),
	"other":         sync.OnceValue(others),
	"javalowercase": tables("", unicode.Ll, unicode.Other_Lowercase), "javauppercase": tables("", unicode.Lu, unicode.Other_Uppercase),
	"javaletter": tables("", unicode.L), "javadigit": digits, "javawhitespace": spaces,
}

// assigned are the characters that have a meaning.
var assigned = sync.OnceValue(func() *Set {
	return setOfTables(unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C)
})

func others() *Set {
	s := assigned().negated()
	s.addSet(setOfTables(unicode.C))
	return s.done()
}

// notGraph are spaces, controls, surrogates and what has no meaning.
func notGraph() *Set {
	s := assigned().negated()
	s.addSet(setOfTables(unicode.White_Space, unicode.Cc, unicode.Cs))
	return s.done()
}

// looseName is a name without case, spaces, hyphens and underscores, as names of properties are compared.
func looseName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' || r == '-' {
			return -1
		}
		return r
	}, name))
}

// looseTables are the tables of package unicode by their loose names.
type looseTables map[string]*unicode.RangeTable

func loosen(tables map[string]*unicode.RangeTable) looseTables {
	out := looseTables{}
	for name, t := range tables {
		out[looseName(name)] = t
	}
	return out
}

var (
	categories = sync.OnceValue(func() looseTables {
		out := loosen(unicode.Categories)
		for long, short := range unicode.CategoryAliases {
			if t := unicode.Categories[short]; t != nil {
				out[looseName(long)] = t
			}
		}
		return out
	})
	scripts = sync.OnceValue(func() looseTables {
		out := loosen(unicode.Scripts)
		for short, name := range scriptCodes {
			out[short] = unicode.Scripts[name]
		}
		return out
	})
	properties = sync.OnceValue(func() looseTables { return loosen(unicode.Properties) })
)

// scriptCodes are the short names of scripts that are used most.
var scriptCodes = map[string]string{
	"arab": "Arabic", "armn": "Armenian", "beng": "Bengali", "bopo": "Bopomofo", "cyrl": "Cyrillic", "deva": "Devanagari",
	"ethi": "Ethiopic", "geor": "Georgian", "grek": "Greek", "gujr": "Gujarati", "guru": "Gurmukhi", "hang": "Hangul",
	"hani": "Han", "hebr": "Hebrew", "hira": "Hiragana", "kana": "Katakana", "khmr": "Khmer", "knda": "Kannada",
	"laoo": "Lao", "latn": "Latin", "mlym": "Malayalam", "mong": "Mongolian", "mymr": "Myanmar", "orya": "Oriya",
	"sinh": "Sinhala", "taml": "Tamil", "telu": "Telugu", "thai": "Thai", "tibt": "Tibetan", "zinh": "Inherited", "zyyy": "Common",
	"qaai": "Inherited",
}

// propertySet finds the set of \p{name} and [:name:]: a general category, a script, a binary property, each by its name
// alone or with that of the kind of property before it. It is nil if there is none.
func propertySet(name string) *Set {
	kind, value, with := strings.Cut(name, "=")
	if !with {
		kind, value, with = strings.Cut(name, ":")
	}
	if !with {
		return propertyNamed(looseName(name))
	}
	value = looseName(value)
	switch kind = looseName(kind); kind {
	case "gc", "generalcategory":
		if s := namedSets[value]; s != nil && (value == "lc" || value == "cn" || value == "c" || value == "casedletter" || value == "unassigned" ||
			value == "other") {
			return s()
		}
		return setOf(categories()[value])
	case "sc", "script":
		return setOf(scripts()[value])
	}
	s := propertyNamed(kind)
	switch {
	case s == nil || categories()[kind] != nil || scripts()[kind] != nil:
		return nil
	case value == "yes" || value == "y" || value == "true" || value == "t":
		return s
	case value == "no" || value == "n" || value == "false" || value == "f":
		return s.negated()
	}
	return nil
}

func propertyNamed(name string) *Set {
	if s := namedSets[name]; s != nil {
		return s()
	}
	for _, t := range []looseTables{categories(), scripts(), properties()} {
		if s := setOf(t[name]); s != nil {
			return s
		}
	}
	if rest, ok := strings.CutPrefix(name, "is"); ok && rest != "" {
		return propertyNamed(rest)
	}
	return nil
}

func setOf(t *unicode.RangeTable) *Set {
	if t == nil {
		return nil
	}
	return setOfTables(t)
}
