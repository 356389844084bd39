package node

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/server/auth"
)

// accounts finds accounts for the doors.
type accounts struct {
	n    *Node
	root auth.Account
}

func (a *accounts) init(n *Node) { a.n = n }

// Account implements auth.Source.
func (a *accounts) Account(user, host, address string) (auth.Account, bool) {
	return a.root, user == a.root.User
}

// rootPassword is what the configuration says, or drawn: then it is told.
func (n *Node) rootPassword() (password string, drawn bool, err error) {
	if name := n.cfg.String("initial_root_password_file"); name != "" {
		b, err := os.ReadFile(name)
		if err != nil {
			return "", false, fmt.Errorf("initial_root_password_file: %w", err)
		}
		line, _, _ := bytes.Cut(b, []byte("\n"))
		if password = strings.TrimSpace(string(line)); password == "" {
			return "", false, fmt.Errorf("initial_root_password_file: %s has an empty first line", name)
		}
		return password, false, nil
	}
	if password = n.cfg.String("initial_root_password"); password != "" {
		return password, false, nil
	}
	return rand.Text()[:20], true, nil
}

// firstStart makes the accounts of a group that has none.
func (n *Node) firstStart() error {
	password, drawn, err := n.rootPassword()
	if err != nil {
		return err
	}
	if drawn {
		n.log.Warn("root@% has been given a password, which is not told again: change it", "password", password)
	}
	n.accounts.root = auth.Account{User: "root", Host: "%", Plugin: priv.SHA2, Admin: true,
		Hash: priv.HashSHA2([]byte(password), []byte(rand.Text()[:20]))}
	return nil
}
