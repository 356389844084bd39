package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// posixClasses are the names that may stand in [: :], in Go's syntax.
var posixClasses = map[string]string{
	"alpha": `\p{L}\p{Nl}`, "lower": `\p{Ll}`, "upper": `\p{Lu}`, "digit": `\p{Nd}`, "alnum": `\p{L}\p{Nl}\p{Nd}`,
	"punct": `\p{P}`, "space": spaceClass, "blank": hspaceClass, "cntrl": `\p{Cc}`, "xdigit": `0-9A-Fa-f`,
	"word": wordClass, "graph": `\p{L}\p{M}\p{N}\p{P}\p{S}`, "print": `\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}`,
}

// classEscape translates an escape that may also stand in brackets: class is what it is there, or empty for the one
// character r. t.at is at the letter.
func (t *patternTranslator) classEscape() (class string, r rune, err error) {
	c, n := utf8.DecodeRuneInString(t.in[t.at:])
	t.at += n
	switch c {
	case 'd':
		return `\p{Nd}`, 0, nil
	case 'D':
		return `\P{Nd}`, 0, nil
	case 'w':
		return wordClass, 0, nil
	case 's':
		return spaceClass, 0, nil
	case 'h':
		return hspaceClass, 0, nil
	case 'v':
		return lineEnds, 0, nil
	case 'p', 'P':
		class, err = t.property(c == 'P')
		return class, 0, err
	case 'a':
		return "", 7, nil
	case 'e':
		return "", 0x1b, nil
	case 'f':
		return "", '\f', nil
	case 'n':
		return "", '\n', nil
	case 'r':
		return "", '\r', nil
	case 't':
		return "", '\t', nil
	case 'c':
		if t.at >= len(t.in) {
			return "", 0, errPatternEscape
		}
		t.at++
		return "", rune(t.in[t.at-1] & 0x1f), nil
	case 'u', 'U', 'x', '0':
		r, err = t.codePoint(c)
		return "", r, err
	}
	if unicode.IsLetter(c) && c < utf8.RuneSelf || c >= '1' && c <= '9' {
		return "", 0, errPatternEscape
	}
	return "", c, nil
}

// codePoint reads \uhhhh, \Uhhhhhhhh, \xhh, \x{h..} and \0ooo.
func (t *patternTranslator) codePoint(c rune) (rune, error) {
	rest := t.in[t.at:]
	width, base := 0, 16
	switch {
	case c == 'u':
		width = 4
	case c == 'U':
		width = 8
	case c == '0':
		base = 8
		for width < 3 && width < len(rest) && rest[width] >= '0' && rest[width] <= '7' {
			width++
		}
		if width == 0 {
			return 0, errPatternEscape
		}
	case strings.HasPrefix(rest, "{"):
		end := strings.IndexByte(rest, '}')
		if end < 2 || end > 9 {
			return 0, errPatternEscape
		}
		t.at += 2
		rest, width = rest[1:end], end-1
	default:
		for width < 2 && width < len(rest) && strings.IndexByte("0123456789abcdefABCDEF", rest[width]) >= 0 {
			width++
		}
	}
	if width == 0 || width > len(rest) {
		return 0, errPatternEscape
	}
	v, err := strconv.ParseUint(rest[:width], base, 32)
	if err != nil || v > utf8.MaxRune || v >= 0xd800 && v < 0xe000 {
		return 0, errPatternEscape
	}
	t.at += width
	return rune(v), nil
}

// property translates \p{name}: a general category or a script.
func (t *patternTranslator) property(negated bool) (string, error) {
	rest := t.in[t.at:]
	name := ""
	switch {
	case rest == "":
		return "", errPatternEscape
	case rest[0] == '{':
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return "", errPatternEscape
		}
		name = rest[1:end]
		t.at += end + 1
	default:
		name = rest[:1]
		t.at++
	}
	if strings.HasPrefix(name, "^") {
		name, negated = name[1:], !negated
	}
	name, ok := propertyName(name)
	if !ok {
		return "", errPatternArgument
	}
	if negated {
		return `\P{` + name + `}`, nil
	}
	return `\p{` + name + `}`, nil
}

// propertyName finds the name by which Go knows a category or script.
func propertyName(name string) (string, bool) {
	if _, value, ok := strings.Cut(name, "="); ok {
		name = value
	}
	name = strings.ReplaceAll(strings.TrimSpace(name), " ", "_")
	if _, ok := unicode.Categories[name]; ok {
		return name, true
	}
	if _, ok := unicode.Scripts[name]; ok {
		return name, true
	}
	switch strings.ToLower(name) {
	case "letter", "alphabetic", "alpha":
		return "L", true
	case "uppercase", "uppercase_letter", "upper":
		return "Lu", true
	case "lowercase", "lowercase_letter", "lower":
		return "Ll", true
	case "number":
		return "N", true
	case "digit", "decimal_number":
		return "Nd", true
	case "punctuation", "punct":
		return "P", true
	case "symbol":
		return "S", true
	case "mark":
		return "M", true
	case "separator":
		return "Z", true
	case "control", "cntrl":
		return "Cc", true
	}
	for script := range unicode.Scripts {
		if strings.EqualFold(script, name) {
			return script, true
		}
	}
	return "", false
}

// bracket translates a set; t.at is behind the opening bracket. A set within a set adds its members.
func (t *patternTranslator) bracket(depth int) error {
	if depth > 20 {
		return errPatternTooBig
	}
	body, negated, err := t.setBody(depth)
	if err != nil {
		return err
	}
	if negated {
		body = "^" + body
	}
	t.out.WriteString("[" + body + "]")
	return nil
}

func (t *patternTranslator) setBody(depth int) (body string, negated bool, err error) {
	if strings.HasPrefix(t.in[t.at:], "^") {
		negated = true
		t.at++
	}
	var out strings.Builder
	for {
		rest := t.in[t.at:]
		switch {
		case rest == "":
			return "", false, errPatternBracket
		case rest[0] == ']':
			if out.Len() == 0 {
				return "", false, errPatternBracket
			}
			t.at++
			return out.String(), negated, nil
		case strings.HasPrefix(rest, "[:"):
			err = t.posixClass(&out)
		case rest[0] == '[':
			err = t.innerSet(&out, depth)
		case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "--"):
			err = errPatternFeature
		default:
			err = t.setRange(&out)
		}
		if err != nil {
			return "", false, err
		}
	}
}

func (t *patternTranslator) innerSet(out *strings.Builder, depth int) error {
	if depth > 20 {
		return errPatternTooBig
	}
	t.at++
	body, negated, err := t.setBody(depth + 1)
	if err == nil && negated {
		err = errPatternFeature
	}
	out.WriteString(body)
	return err
}

// posixClass translates [:name:] and [:^name:].
func (t *patternTranslator) posixClass(out *strings.Builder) error {
	rest := t.in[t.at+2:]
	end := strings.Index(rest, ":]")
	if end < 0 {
		return errPatternBracket
	}
	name := strings.ToLower(rest[:end])
	if strings.HasPrefix(name, "^") {
		return errPatternFeature
	}
	class, ok := posixClasses[name]
	if !ok {
		name, known := propertyName(name)
		if !known {
			return errPatternArgument
		}
		class = `\p{` + name + `}`
	}
	t.at += 2 + end + 2
	out.WriteString(class)
	return nil
}

// setRange translates one member of a set, a character, a range or an escape.
func (t *patternTranslator) setRange(out *strings.Builder) error {
	class, low, err := t.setMember()
	if err != nil || class != "" {
		out.WriteString(class)
		return err
	}
	rest := t.in[t.at:]
	if len(rest) < 2 || rest[0] != '-' || rest[1] == ']' || rest[1] == '-' {
		writeRune(out, low)
		return nil
	}
	t.at++
	class, high, err := t.setMember()
	switch {
	case err != nil:
		return err
	case class != "":
		writeRune(out, low)
		out.WriteString(`\-` + class)
		return nil
	case high < low:
		return errPatternRange
	}
	writeRune(out, low)
	out.WriteByte('-')
	writeRune(out, high)
	return nil
}

func writeRune(out *strings.Builder, r rune) { fmt.Fprintf(out, `\x{%x}`, r) }

func (t *patternTranslator) setMember() (class string, r rune, err error) {
	if t.in[t.at] != '\\' {
		r, n := utf8.DecodeRuneInString(t.in[t.at:])
		t.at += n
		return "", r, nil
	}
	t.at++
	if t.at >= len(t.in) {
		return "", 0, errPatternEscape
	}
	switch t.in[t.at] {
	case 'b':
		t.at++
		return "", '\b', nil
	case 'W', 'S':
		t.at++
		return `\` + t.in[t.at-1:t.at], 0, nil // of ASCII: sets have no difference
	case 'H', 'V', 'N', 'R', 'X':
		return "", 0, errPatternFeature
	}
	return t.classEscape()
}
