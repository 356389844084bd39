package config

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Print writes the settings in force as a file that Load reads.
func (c *Config) Print(w io.Writer) error {
	var b strings.Builder
	for _, sec := range Sections {
		fmt.Fprintf(&b, "# %s\n\n", sec.Title)
		for i := range sec.Settings {
			s := &sec.Settings[i]
			comment(&b, s.Doc)
			fmt.Fprintf(&b, "# %s\n", s.limitText())
			text := c.show(s)
			from := ""
			if v, ok := c.values[s.Name]; ok {
				from = "  # from " + v.origin
			}
			fmt.Fprintf(&b, "%s = %s%s\n\n", s.Name, text, from)
		}
	}
	if len(c.variables) > 0 {
		fmt.Fprintf(&b, "# Global variables of sessions\n\n")
	}
	for _, name := range slices.Sorted(maps.Keys(c.variables)) {
		fmt.Fprintf(&b, "%s = %s  # from %s\n", name, c.variables[name].text, c.variables[name].origin)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Config) show(s *Setting) string {
	text := c.String(s.Name)
	switch {
	case s.Secret && text != "":
		return "(not shown)"
	case s.Kind == Bytes:
		return s.show(c.Int(s.Name))
	case s.Kind == Number:
		return text
	case strings.ContainsAny(text, "#;") || text != strings.TrimSpace(text):
		return `"` + text + `"`
	}
	return text
}

// comment writes text as comments of at most a hundred columns.
func comment(b *strings.Builder, text string) {
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 100 {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// limitText says what values a setting takes.
func (s *Setting) limitText() string {
	var what string
	switch {
	case len(s.Choices) > 0:
		return "One of " + strings.Join(s.Choices, ", ") + "; default " + s.Default
	case s.Kind == Switch:
		return "ON or OFF; default " + s.Default
	case s.Kind == Number:
		what = "A number"
	case s.Kind == Bytes:
		what = "Bytes (K, M, G, T)"
		if s.OfMemory {
			what = "Bytes (K, M, G, T; %)"
		}
	case s.Kind == Duration:
		what = "A time (ms, s, m, h)"
	case s.Kind == List:
		what = "A list with commas"
	case s.Kind == Fraction:
		what = "A number from 0 to 1"
	default:
		what = "Text"
	}
	if s.Kind == Number || s.Kind == Bytes || s.Kind == Duration {
		what += " from " + s.show(s.Min)
		if s.Max != 0 {
			what += " to " + s.show(s.Max)
		}
	}
	if s.Default == "" {
		return what + "; default none"
	}
	return what + "; default " + s.Default
}

// Help writes what settings there are.
func Help(w io.Writer) error {
	var b strings.Builder
	for _, sec := range Sections {
		fmt.Fprintf(&b, "\n%s:\n", sec.Title)
		for i := range sec.Settings {
			s := &sec.Settings[i]
			fmt.Fprintf(&b, "  --%s\n", strings.ReplaceAll(s.Name, "_", "-"))
			var c strings.Builder
			comment(&c, s.Doc+" "+s.limitText()+".")
			b.WriteString(strings.ReplaceAll("\n"+strings.TrimSuffix(c.String(), "\n"), "\n#", "\n     ")[1:] + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Markdown writes the settings as the documentation has them.
func Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Settings of a node\n\nGenerated from `server/config`. A setting comes from the first of: an option of `trireme server` (`--max-connections=100`), the\n" +
		"environment (`TRIREME_MAX_CONNECTIONS=100`), the file that `--config` names (`max_connections = 100`), its default. `-` and `_` are the\n" +
		"same. `trireme server --print-config` prints what is in force, as such a file; `--check-config` tells what a start would refuse, and\n" +
		"stops: it opens neither data nor ports, and exits with 0 if nothing is wrong. Unknown names and values out of their limits are\n" +
		"refused. A name that is not in these tables is taken for a global variable of sessions (`sql_mode`, `wait_timeout`, …). 512M, 512m and\n" +
		"Kubernetes' 512Mi are the same number of bytes.\n")
	for _, sec := range Sections {
		fmt.Fprintf(&b, "\n## %s\n\n| Name | Values | Meaning |\n|---|---|---|\n", sec.Title)
		for i := range sec.Settings {
			s := &sec.Settings[i]
			doc := strings.NewReplacer("|", `\|`, "<", "&lt;", "{}", "`{}`", "*", `\*`).Replace(s.Doc)
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, s.limitText(), doc)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
