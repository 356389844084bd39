package users

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/priv"
)

// rootKey is the attribute of root@% with hashes of the passwords that the file has had, the newest
// first. Where the account has another password and the file still has the newest, it was changed by a
// statement, and stays. A file that has one of the others is an old one, as another pod may see it for a
// while, or for good. One that has none of them was changed since.
const rootKey = "root_password_file"

// rootKept is how many of them are kept.
const rootKept = 5

// rootAccount is the account that a group begins with.
const rootAccount = "'root'@'%'"

var rootID = priv.NewID("root", "%")

// Root gives root@% the password that a file has, whenever that changes. One task uses it.
type Root struct {
	opt  Options
	file string
	sum  [sha256.Size]byte // of the password that was looked at last on this leader
	told string            // the last error

	since time.Time // it is so; zero: there is no error
	alarm bool      // Options.Lasting was told of it
}

// rootLasts is how long the password is not kept until that is no matter of a file that Kubernetes has yet to change.
const rootLasts = 3 * time.Minute

// NewRoot returns one for a file, whose first line is the password. Of the options it needs no Dir.
func NewRoot(file string, o Options) *Root { return &Root{opt: o, file: file} }

// Run looks at the file until ctx ends.
func (r *Root) Run(ctx context.Context) {
	tick := env.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		r.Look(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Next()
		}
	}
}

// Look does what is to be done now. What it could not do it tries again the next time.
func (r *Root) Look(ctx context.Context, now time.Time) {
	if !r.opt.Leads() {
		r.sum = [sha256.Size]byte{}
		r.tell(ctx, nil, now)
		return
	}
	password, err := ReadPassword(r.file)
	sum := sha256.Sum256([]byte(password))
	if err == nil && sum == r.sum {
		r.tell(ctx, nil, now) // a file that could not be read is there again
		return
	}
	if err == nil {
		err = r.keep(ctx, password)
	}
	if !r.opt.Leads() || ctx.Err() != nil {
		return // the next leader does it
	}
	if err == nil {
		r.sum = sum
	}
	r.tell(ctx, err, now)
}

// tell logs an error, once, and tells Options.Lasting of one that lasts, once.
func (r *Root) tell(ctx context.Context, err error, now time.Time) {
	if err == nil {
		r.told, r.since, r.alarm = "", time.Time{}, false
		return
	}
	if text := err.Error(); text != r.told {
		r.opt.Log.Error("root_password_file: the password of root@% is not kept", "file", r.file, "error", text)
		r.told, r.since, r.alarm = text, now, false
	}
	if r.opt.Lasting != nil && !r.alarm && now.Sub(r.since) >= rootLasts {
		r.alarm = true
		r.opt.Lasting(ctx, r.told)
	}
}

// ReadPassword reads a password from a file: its first line.
func ReadPassword(file string) (string, error) {
	b, err := readFile(file)
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	switch password := strings.TrimSpace(string(line)); {
	case password == "":
		return "", errors.New("its first line, the password, is empty")
	case len(password) > passwordMax:
		return "", fmt.Errorf("the password is longer than %d bytes", passwordMax)
	default:
		return password, nil
	}
}

// keep brings the account in step with the file.
func (r *Root) keep(ctx context.Context, password string) error {
	ctx, cancel := context.WithTimeout(ctx, entryLimit)
	defer cancel()
	c, err := open(ctx, r.opt.Open)
	if err != nil {
		return err
	}
	defer c.close()
	rows, err := c.run(ctx, "SELECT plugin, authentication_string, CAST(User_attributes AS CHAR) FROM mysql.user WHERE User = 'root' AND Host = '%'")
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return errors.New("there is no account root@%")
	}
	plugin, hash := rows[0][0], rows[0][1]
	attributes := metadata(rows[0][2])
	var seen []string
	_ = json.Unmarshal(attributes[rootKey], &seen) // somebody may have written something else there
	at := slices.IndexFunc(seen, func(hash string) bool { return priv.CheckSHA2(hash, []byte(password)) })
	// A statement that gives the account other attributes takes these away. This leader may know better.
	changed := at < 0 && (len(seen) > 0 || r.sum != [sha256.Size]byte{})
	holds, identified := proves(plugin, hash, password), ""
	switch {
	case at > 0:
		return errors.New("the file has a password that it had before another one: it is an old file, or a password was used again; give root a new one")
	case !holds && changed:
		now, err := priv.HashPassword(plugin, password, salt)
		if err != nil {
			return err
		}
		identified = " IDENTIFIED WITH " + quoteText(plugin) + " AS " + quoteText(now)
	case !holds:
		r.opt.Log.Warn("root@% has another password than root_password_file, since it was changed otherwise: that stays until the file changes", "file", r.file)
	}
	if at == 0 {
		return nil
	}
	now, err := priv.HashPassword(priv.SHA2, password, salt)
	if err != nil {
		return err
	}
	seen = slices.Insert(seen, 0, now)
	attributes[rootKey], _ = json.Marshal(seen[:min(len(seen), rootKept)]) // texts
	b, _ := json.Marshal(attributes)                                       // what was read
	if _, err := c.run(ctx, "ALTER USER "+rootAccount+identified+" ATTRIBUTE "+quoteText(string(b))); err != nil {
		return errors.New(strings.NewReplacer(now, "…", identified, "…").Replace(err.Error())) // where a message repeats the statement
	}
	if identified == "" {
		return nil
	}
	r.opt.Log.Info("root@% has the new password of root_password_file")
	// It is taken all the same: whoever operates the group has to get in.
	if rule, err := r.opt.fault(rootID, password); err == nil && rule != "" {
		r.opt.Log.Warn("root_password_file: the password of root@% does not satisfy the policy of passwords",
			"rule", rule, "file", r.file)
	}
	return nil
}

// metadata is what statements have put into an account's attributes.
func metadata(attributes string) map[string]json.RawMessage {
	var a struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if json.Unmarshal([]byte(attributes), &a) != nil || a.Metadata == nil {
		return map[string]json.RawMessage{}
	}
	return a.Metadata
}
