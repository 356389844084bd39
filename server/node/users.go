package node

import (
	"context"
	"fmt"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/server/metrics"
	"github.com/triremedb/trireme/server/users"
)

// keepUsers keeps the accounts of users_dir, and the password of root, while this node leads, by the
// privileges of the account that a group begins with.
func (n *Node) keepUsers() {
	o := users.Options{Dir: n.cfg.String("users_dir"), Leads: n.serves, Log: n.log, Open: func() (users.Session, error) {
		s, err := n.sessions.Open(session.ConnectionInfo{User: "users_dir", Host: "localhost", AccountUser: "root", AccountHost: "%", Admin: true})
		if err != nil {
			return nil, fmt.Errorf("they are made by the privileges of root@%%, which begins with the group: %w", err)
		}
		return s, nil
	}}
	o.Fault = n.sessions.PasswordFault
	if o.Dir != "" {
		k := users.New(o)
		n.users.Store(k)
		n.untilStopped(k.Run)
	}
	if file := n.cfg.String("root_password_file"); file != "" {
		o.Lasting = func(ctx context.Context, why string) {
			n.tell(ctx, "RootPasswordRefused", fmt.Sprintf("root@%% does not have the password of its Secret: %s. Clients of that Secret cannot log in. %s",
				why, rootCure(o.Open)))
		}
		n.untilStopped(users.NewRoot(file, o).Run)
	}
}

// rootCure is what helps where root does not get the password of its Secret.
func rootCure(open func() (users.Session, error)) string {
	s, err := open()
	if err != nil { // the account is gone, or may nothing any more
		return "Make the account root@% again, with all privileges, by one that may"
	}
	_ = s.Close()
	return "Put a password into the Secret that it has not had"
}

// untilStopped runs a task whose context ends when the node stops.
func (n *Node) untilStopped(task func(ctx context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	n.tasks.Add(2)
	go func() {
		defer n.tasks.Done()
		<-n.stopping
		stop()
	}()
	go func() {
		defer n.tasks.Done()
		task(ctx)
	}()
}

// usersMetrics tells what users_dir has that is not so.
func (n *Node) usersMetrics(m *metrics.Writer) {
	if k := n.users.Load(); k != nil {
		entries, all := k.Failing()
		m.Set("trireme_users_dir_failed", metrics.On(all))
		m.Set("trireme_users_dir_failed_entries", float64(entries))
	}
}
