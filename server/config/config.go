package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sources are where settings come from.
type Sources struct {
	Args []string // --name=value, --name value, --name
	Env  []string // NAME=value; those that begin with TRIREME_ count
	// File is read if Args and Env name none; empty: none is.
	File string
	// Variable checks a global variable of sessions; nil: there are none.
	Variable func(name, value string) error
	// Root is the root of the file system, which tells how much memory there is; nil: the
	// machine's.
	Root fs.FS
	// Container is the limit on memory of the container in which the node is to run, in place of the limit of
	// the control group of this process; 0: that one counts; negative: there is no limit.
	Container int64
}

// Config are the settings of a node.
type Config struct {
	values    map[string]value
	variables map[string]value
	// PrintConfig, CheckConfig and Help tell that the node is only asked for words.
	PrintConfig, CheckConfig, Help bool

	container int64 // of Sources
}

type value struct {
	text   string // as normalise leaves it
	origin string // "--name", "TRIREME_NAME", "file:7"; empty: the default
}

const prefix = "TRIREME_"

// Load gathers and checks the settings. An error lists everything that is wrong, and
// what to change.
func Load(src Sources) (*Config, error) {
	c := &Config{values: make(map[string]value), variables: make(map[string]value), container: src.Container}
	l := loader{c: c, src: src}
	file := src.File
	args := l.args(src.Args, &file)
	env := l.env(src.Env, &file)
	if file != "" {
		l.file(file)
	}
	for _, all := range [][]given{env, args} {
		for _, g := range all {
			l.set(g)
		}
	}
	l.shares()
	return c, errors.Join(append(l.errs, c.consistent()...)...)
}

// given is a setting as somebody wrote it.
type given struct{ name, text, origin string }

type loader struct {
	c    *Config
	src  Sources
	errs []error
}

func (l *loader) fail(format string, a ...any) { l.errs = append(l.errs, fmt.Errorf(format, a...)) }

func fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

func (l *loader) args(args []string, file *string) (all []given) {
	for i := 0; i < len(args); i++ {
		name, ok := strings.CutPrefix(args[i], "-")
		name = strings.TrimPrefix(name, "-")
		if !ok || name == "" {
			l.fail("%q: settings are given as --name=value", args[i])
			continue
		}
		name, text, hasValue := strings.Cut(name, "=")
		name = fold(name)
		switch name {
		case "print_config":
			l.c.PrintConfig = true
			continue
		case "check_config":
			l.c.CheckConfig = true
			continue
		case "help", "h":
			l.c.Help = true
			continue
		}
		if s := byName[name]; !hasValue && (s == nil || s.Kind != Switch) {
			if i+1 >= len(args) {
				l.fail("--%s: a value is missing", name)
				continue
			}
			i++
			text, hasValue = args[i], true
		}
		if !hasValue {
			text = "ON"
		}
		if name == "config" {
			*file = text
			continue
		}
		all = append(all, given{name, text, "--" + name})
	}
	return all
}

func (l *loader) env(env []string, file *string) (all []given) {
	env = slices.Sorted(slices.Values(env))
	for _, e := range env {
		name, text, _ := strings.Cut(e, "=")
		short, ours := strings.CutPrefix(name, prefix)
		if !ours {
			continue
		}
		if short == "CONFIG" {
			if *file == l.src.File {
				*file = text
			}
			continue
		}
		all = append(all, given{fold(short), text, name})
	}
	return all
}

func (l *loader) file(name string) {
	f, err := os.Open(name)
	if err != nil {
		l.fail("the configuration file: %w", err)
		return
	}
	defer func() { _ = f.Close() }()
	const most = 1 << 20
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || len(b) > most {
		l.fail("%s: not a configuration file (%v)", name, err)
		return
	}
	for _, g := range l.lines(name, string(b)) {
		l.set(g)
	}
}

// lines reads a file's text.
func (l *loader) lines(file, text string) (all []given) {
	counts := true
	for i, line := range strings.Split(text, "\n") {
		origin := file + ":" + strconv.Itoa(i+1)
		line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
			continue
		case line[0] == '[':
			section := strings.ToLower(strings.Trim(line, "[] \t"))
			counts = section == "trireme" || section == "mysqld" || section == "server"
			continue
		case line[0] == '!':
			l.fail("%s: %s is not supported: put the settings into this file", origin, strings.Fields(line)[0])
			continue
		case !counts:
			continue
		}
		name, value, has := strings.Cut(line, "=")
		if !has {
			value = "ON"
		}
		all = append(all, given{fold(strings.TrimSpace(name)), unquote(strings.TrimSpace(value)), origin})
	}
	return all
}

func unquote(s string) string {
	if n := len(s); n >= 2 && (s[0] == '"' || s[0] == '\'') && s[n-1] == s[0] {
		return s[1 : n-1]
	}
	if i := strings.Index(s, " #"); i >= 0 {
		return strings.TrimSpace(s[:i])
	}
	return s
}

// set takes a value over.
func (l *loader) set(g given) {
	s := byName[g.name]
	if s == nil {
		l.variable(g)
		return
	}
	text, err := s.normalise(g.text)
	if err != nil {
		l.fail("%s: %s %w", g.origin, s.Name, err)
		return
	}
	l.c.values[s.Name] = value{text, g.origin}
}

func (l *loader) variable(g given) {
	if l.src.Variable == nil {
		l.fail("%s: there is no setting %s%s", g.origin, g.name, suggestion(g.name))
		return
	}
	if err := l.src.Variable(g.name, g.text); err != nil {
		hint := ""
		if strings.Contains(err.Error(), "Unknown system variable") {
			l.fail("%s: there is no setting or variable %s%s", g.origin, g.name, suggestion(g.name))
			return
		}
		l.fail("%s: %w%s", g.origin, err, hint)
		return
	}
	l.c.variables[g.name] = value{g.text, g.origin}
}

// suggestion names a setting that is like the name.
func suggestion(name string) string {
	best, distance := "", 3+len(name)/8
	for n := range byName {
		if d := edits(name, n); d < distance || d == distance && best != "" && n < best {
			best, distance = n, d
		}
	}
	if best == "" {
		return " (trireme server --help lists them)"
	}
	return "; is " + best + " meant?"
}

// edits is the number of letters to change, add or drop from a to b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// normalise checks a text and gives the form that the getters read.
func (s *Setting) normalise(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(s.Choices) > 0 {
		for _, c := range s.Choices {
			if strings.EqualFold(c, text) {
				return c, nil
			}
		}
		return "", fmt.Errorf("cannot be %q: it is one of %s", text, strings.Join(s.Choices, ", "))
	}
	switch s.Kind {
	case Switch:
		switch strings.ToLower(text) {
		case "on", "1", "true", "yes", "":
			return "ON", nil
		case "off", "0", "false", "no":
			return "OFF", nil
		}
		return "", fmt.Errorf("cannot be %q: it is ON or OFF", text)
	case Number, Bytes:
		if digits, is := strings.CutSuffix(text, "%"); is && s.OfMemory {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 1 || n > shareMost {
				return "", fmt.Errorf("cannot be %q: a part of the memory is from 1%% to %d%%", text, shareMost)
			}
			return text, nil
		}
		n, err := parseBytes(text, s.Kind == Bytes)
		if err == nil {
			err = s.limits(n, s.show)
		}
		return strconv.FormatInt(n, 10), err
	case Duration:
		d, err := parseDuration(text)
		if err == nil {
			err = s.limits(int64(d), s.show)
		}
		return d.String(), err
	case Fraction:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return "", fmt.Errorf("cannot be %q: it is a number from 0 to 1, as 0.01", text)
		}
		return strconv.FormatFloat(f, 'f', -1, 64), nil
	}
	return text, nil
}

func (s *Setting) show(n int64) string {
	switch s.Kind {
	case Duration:
		return time.Duration(n).String()
	case Bytes:
		for _, u := range []struct {
			size int64
			name string
		}{{tib, "T"}, {gib, "G"}, {mib, "M"}, {kib, "K"}} {
			if n >= u.size && n%u.size == 0 {
				return strconv.FormatInt(n/u.size, 10) + u.name
			}
		}
	}
	return strconv.FormatInt(n, 10)
}

func (s *Setting) limits(n int64, show func(int64) string) error {
	switch {
	case n < s.Min:
		return fmt.Errorf("is %s: the least is %s", show(n), show(s.Min))
	case s.Max != 0 && n > s.Max:
		return fmt.Errorf("is %s: the most is %s", show(n), show(s.Max))
	}
	return nil
}

func parseBytes(text string, units bool) (int64, error) {
	digits, shift := text, 0
	if short := strings.TrimSuffix(text, "i"); units && len(short) > 1 { // 1Gi is Kubernetes' way to write 1G
		last := len(short) - 1
		if i := strings.IndexByte("kmgt", short[last]|0x20); i >= 0 {
			digits, shift = short[:last], 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n<<shift>>shift != n {
		if units {
			return 0, fmt.Errorf("cannot be %q: it is a number of bytes, as 512M or 512Mi", text)
		}
		return 0, fmt.Errorf("cannot be %q: it is a whole number", text)
	}
	return n << shift, nil
}

func parseDuration(text string) (time.Duration, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && n < 1<<33 {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("cannot be %q: it is a time, as 500ms or 10s", text)
	}
	return d, nil
}

// consistent checks what several settings say together.
func (c *Config) consistent() (errs []error) {
	pair := func(a, b string) {
		if (c.String(a) == "") != (c.String(b) == "") {
			errs = append(errs, fmt.Errorf("%s and %s belong together: set both or neither", a, b))
		}
	}
	pair("ssl_cert", "ssl_key")
	offered := c.String("ssl_cert") != "" || c.Bool("auto_generate_certs")
	switch {
	case c.String("ssl_ca") != "" && !offered:
		errs = append(errs, errors.New("ssl_ca needs ssl_cert and ssl_key, or auto_generate_certs"))
	case c.String("ssl_crl") != "" && c.String("ssl_ca") == "":
		errs = append(errs, errors.New("ssl_crl needs ssl_ca: the authorities whose certificates it lists"))
	}
	if least, most := c.TLSVersions(); least == 0 || most == 0 {
		errs = append(errs, fmt.Errorf("tls_version cannot be %q: it is TLSv1.2, TLSv1.3 or TLSv1.2,TLSv1.3; older ones are not offered", c.String("tls_version")))
	}
	pair("peer_tls_cert", "peer_tls_key")
	pair("peer_tls_cert", "peer_tls_ca")
	pair("etcd_tls_cert", "etcd_tls_key")
	switch how := c.String("peer_tls_identity"); {
	case how != "authority" && c.String("peer_tls_cert") == "":
		errs = append(errs, fmt.Errorf("peer_tls_identity=%s needs peer_tls_cert, peer_tls_key and peer_tls_ca", how))
	case how == "host" && c.String("peer_tls_server_name") != "":
		errs = append(errs, errors.New("peer_tls_identity=host and peer_tls_server_name: certificates that all have one name do not tell the members apart"))
	}
	if c.String("initial_root_password") != "" && c.String("initial_root_password_file") != "" {
		errs = append(errs, errors.New("initial_root_password and initial_root_password_file: set one of them"))
	}
	if c.Int("innodb_io_capacity") > c.Int("innodb_io_capacity_max") {
		errs = append(errs, errors.New("innodb_io_capacity is above innodb_io_capacity_max: raise the latter"))
	}
	if c.Bool("require_secure_transport") && !offered {
		errs = append(errs, errors.New("require_secure_transport needs ssl_cert and ssl_key, or auto_generate_certs"))
	}
	switch d := c.String("discovery"); {
	case d == "etcd" && len(c.List("etcd_endpoints")) == 0:
		errs = append(errs, errors.New("discovery=etcd needs etcd_endpoints"))
	case d == "etcd" && (c.String("etcd_tls_ca") != "" || c.String("etcd_tls_cert") != "") && slices.ContainsFunc(c.List("etcd_endpoints"), plainEndpoint):
		errs = append(errs, errors.New("etcd_tls_ca and etcd_tls_cert are for endpoints that begin with https://: etcd_endpoints has one without TLS"))
	case d == "dns" && (c.String("discovery_dns_pattern") == "") == (c.String("discovery_dns_srv") == ""):
		errs = append(errs, errors.New("discovery=dns needs discovery_dns_pattern or discovery_dns_srv, one of them"))
	case d == "dns" && c.Int("discovery_expect") == 0 && c.String("discovery_dns_pattern") != "":
		errs = append(errs, errors.New("discovery_dns_pattern needs discovery_expect: how many nodes found the group"))
	}
	return errs
}

// plainEndpoint reports whether an address of etcd is one that TLS is not used with.
func plainEndpoint(e string) bool { return !strings.HasPrefix(e, "https://") }

// String returns a setting's text. The getters panic when there is no such setting.
func (c *Config) String(name string) string {
	s := byName[name]
	if s == nil {
		panic("config: no setting " + name)
	}
	if v, ok := c.values[name]; ok {
		return v.text
	}
	text, _ := s.normalise(s.Default) // checked by a test
	return text
}

// Given reports whether somebody has set it.
func (c *Config) Given(name string) bool { _, ok := c.values[name]; return ok }

// Bool returns a switch.
func (c *Config) Bool(name string) bool { return c.String(name) == "ON" }

// Int returns a number, or a number of bytes.
func (c *Config) Int(name string) int64 {
	n, _ := strconv.ParseInt(c.String(name), 10, 64)
	return n
}

// Float returns a fraction.
func (c *Config) Float(name string) float64 {
	f, _ := strconv.ParseFloat(c.String(name), 64)
	return f
}

// Duration returns a time.
func (c *Config) Duration(name string) time.Duration {
	d, _ := time.ParseDuration(c.String(name))
	return d
}

// TLSVersions are the oldest and the newest version of TLS that clients may use; 0: tls_version cannot be.
func (c *Config) TLSVersions() (least, most uint16) {
	for _, name := range c.List("tls_version") {
		var v uint16
		switch strings.ToLower(name) {
		case "tlsv1.2":
			v = tls.VersionTLS12
		case "tlsv1.3":
			v = tls.VersionTLS13
		default:
			return 0, 0
		}
		if least == 0 || v < least {
			least = v
		}
		most = max(most, v)
	}
	return least, most
}

// List returns the parts of a list.
func (c *Config) List(name string) (parts []string) {
	for p := range strings.SplitSeq(c.String(name), ",") {
		if p = strings.TrimSpace(p); p != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// Set overrides a setting.
func (c *Config) Set(name, text string) error {
	s := byName[name]
	if s == nil {
		return errors.New("there is no setting " + name)
	}
	text, err := s.normalise(text)
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	c.values[name] = value{text, "set"}
	return nil
}

// Variables are the global variables of sessions, as given.
func (c *Config) Variables() map[string]string {
	all := make(map[string]string)
	for name, v := range c.variables {
		all[name] = v.text
	}
	for name := range shared {
		if !c.Given(name) {
			continue
		}
		text := c.String(name)
		if byName[name].Kind == Duration {
			text = strconv.FormatInt(int64(c.Duration(name)/time.Second), 10)
		}
		if name == "secure_file_priv" && (text == "" || strings.EqualFold(text, "NULL")) {
			continue // there is none, which is the variable's default
		}
		if name == "max_binlog_cache_size" && c.Int(name) == 0 {
			continue // no limit, which is the variable's greatest value and its default
		}
		all[name] = text
	}
	return all
}

// Origin says where a setting, or a global variable of sessions, was set: "--name",
// "TRIREME_NAME", "file:7"; empty: it was not.
func (c *Config) Origin(name string) string {
	if v, ok := c.values[name]; ok {
		return v.origin
	}
	return c.variables[name].origin
}

// DefaultText is the setting's default as String gives it.
func (s *Setting) DefaultText() string {
	text, _ := s.normalise(s.Default) // checked by a test
	return text
}
