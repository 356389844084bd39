package users

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
)

const (
	accountFile  = "account.json"
	passwordFile = "password"

	// EntriesMax is how many entries a directory may have.
	EntriesMax = 1000
	// fileMax is how long a file may be.
	fileMax = 64 << 10
	// passwordMax is how long a password may be, as everywhere.
	passwordMax = 256
)

// entry is what a directory says of an account.
type entry struct {
	name     string
	id       priv.ID
	plugin   string
	tls      bool
	grants   []grant
	password string
	sum      [sha256.Size]byte // of the files
	file     string            // that err is about
	err      error             // it is of no use
}

// grant is a privilege on something, in the form in which it is kept and compared.
type grant struct{ what, on string }

func (g grant) String() string { return g.what + " ON " + g.on }

// read reads the entries of a directory, in the order of their names.
func read(dir string) (list []entry, err error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	owners := map[priv.ID]string{}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), ".") { // a volume of Kubernetes has such ones
			continue
		}
		if len(list) == EntriesMax {
			return nil, fmt.Errorf("%s has more than %d entries", dir, EntriesMax)
		}
		e := readEntry(dir, n.Name())
		if other, taken := owners[e.id]; e.err == nil && taken {
			e.fail(accountFile, fmt.Errorf("the entry %s is for the same account", other))
		}
		if e.err == nil {
			owners[e.id] = e.name
		}
		e.file = filepath.Join(dir, e.name, e.file)
		list = append(list, e)
	}
	return list, nil
}

func (e *entry) fail(file string, err error) { e.file, e.err = file, err }

func readEntry(dir, name string) (e entry) {
	e = entry{name: name, file: accountFile}
	text, err := readFile(filepath.Join(dir, name, accountFile))
	if err == nil {
		err = e.parse(text)
	}
	if err != nil {
		e.fail(accountFile, err)
		return e
	}
	if e.password, err = ReadPassword(filepath.Join(dir, name, passwordFile)); err != nil {
		e.fail(passwordFile, err)
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q", text, e.password)
	sum.Sum(e.sum[:0])
	return e
}

// readFile reads a small file. Errors do not repeat its name.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, plain(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err == nil && len(b) > fileMax {
		err = fmt.Errorf("it is longer than %d bytes", fileMax)
	}
	return b, plain(err)
}

func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// parse reads what an account is.
func (e *entry) parse(text []byte) error {
	var a struct {
		User   string
		Host   string
		Plugin string
		TLS    bool
		Grants []string
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var kind *json.UnmarshalTypeError
	if err := d.Decode(&a); errors.As(err, &kind) {
		return errors.New("it is no JSON object with texts as user, host and plugin, tls true or false, and a list of texts as grants")
	} else if err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows the account")
	}
	if a.Host == "" {
		a.Host = "%"
	}
	if a.Plugin == "" {
		a.Plugin = priv.SHA2
	}
	switch {
	case a.User == "":
		return errors.New("user is missing")
	case utf8.RuneCountInString(a.User) > 32:
		return errors.New("the user's name is longer than 32 characters")
	case len(a.Host) > 255:
		return errors.New("the host is longer than 255 bytes")
	case strings.ContainsFunc(a.User+a.Host, func(r rune) bool { return r < ' ' || r == utf8.RuneError }):
		return errors.New("the user's name, or the host, has characters that no account has")
	case a.Plugin != priv.SHA2 && a.Plugin != priv.Native:
		return fmt.Errorf("the plugin is %q: it is %s or %s", a.Plugin, priv.SHA2, priv.Native)
	}
	e.id, e.plugin, e.tls = priv.NewID(a.User, a.Host), a.Plugin, a.TLS
	for _, text := range a.Grants {
		list, err := parseGrant(text)
		if err != nil {
			return fmt.Errorf("the grant %q: %w", text, err)
		}
		e.grants = append(e.grants, list...)
	}
	slices.SortFunc(e.grants, func(x, y grant) int { return strings.Compare(x.String(), y.String()) })
	e.grants = slices.Compact(e.grants)
	return nil
}

// parseGrant reads what stands between GRANT and TO.
func parseGrant(text string) ([]grant, error) {
	const to = "somebody"
	list, err := ast.Parse("GRANT "+text+" TO `"+to+"`", 0)
	if err != nil {
		return nil, errors.New("it is not as SELECT, INSERT ON shop.*")
	}
	g, ok := list[0].(*ast.Grant)
	switch {
	case !ok || len(list) != 1 || len(g.Users) != 1 || g.Users[0].Auth != nil || g.Users[0].User.Name != to:
		return nil, errors.New("it is not as SELECT, INSERT ON shop.*: privileges, ON, and what they are on")
	case g.WithGrantOption:
		return nil, errors.New("write GRANT OPTION as one of the privileges")
	case g.On.Kind != "" && !strings.EqualFold(g.On.Kind, "TABLE"):
		return nil, errors.New("privileges are on *.*, a schema or a table")
	case !g.On.Global && g.On.Schema == "":
		return nil, errors.New("it does not name the schema")
	}
	target := priv.Target{Schema: g.On.Schema, Table: g.On.Table}
	if _, err := priv.NewRequest(g.Privileges, target, false); err != nil {
		return nil, err
	}
	on := "*.*"
	if target.Schema != "" {
		on = quoteName(target.Schema) + ".*"
	}
	if target.Table != "" {
		on = quoteName(target.Schema) + "." + quoteName(target.Table)
	}
	var all []grant
	for _, p := range g.Privileges {
		if p.Name == "ALL PRIVILEGES" {
			p.Name = "ALL"
		}
		if len(p.Columns) == 0 {
			all = append(all, grant{p.Name, on})
		}
		for _, c := range p.Columns {
			all = append(all, grant{p.Name + " (" + quoteName(c) + ")", on})
		}
	}
	return all, nil
}

func quoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// quoteText writes a text as SQL has it where sql_mode is empty.
func quoteText(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", "''").Replace(text) + "'"
}
