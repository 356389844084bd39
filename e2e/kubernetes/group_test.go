//go:build kubernetes

package kubernetes

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

const (
	namespace = "prod"
	release   = "db"
	name      = release + "-trireme"                                 // of the chart's objects
	address   = name + "." + namespace + ".svc." + domain + ":17000" // for programs
	members   = "app.kubernetes.io/instance=" + release + ",app.kubernetes.io/component=member"
	chartDir  = "../../charts/trireme"
)

// group is a release of the chart.
type group struct {
	*cluster
	selector string // of its members' pods
	program  string // trireme, as in the image
	password string
	http     *http.Client
}

// secret reads the password that the chart has made for a release, by its full name.
func (g *group) secret(name string) string {
	g.t.Helper()
	var s struct {
		Data map[string]string `json:"data"`
	}
	g.must(g.api.get("/api/v1/namespaces/"+namespace+"/secrets/"+name+"-root", &s))
	b, err := base64.StdEncoding.DecodeString(s.Data["root-password"])
	g.must(err)
	return string(b)
}

// upgrade changes values of the release, and waits until all of its pods are as they say.
func (g *group) upgrade(args ...string) {
	g.t.Helper()
	g.helm(append([]string{"upgrade", release, chartDir, "--namespace=" + namespace, "--reuse-values", "--wait", "--timeout=5m"}, args...)...)
}

// dsn is where a pod only reads.
func (g *group) dsn(p *pod) string {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName, c.TLSConfig = "root", g.password, "tcp", p.Status.IP+":3406", "", "skip-verify"
	c.Timeout, c.ReadTimeout = 5*time.Second, time.Minute
	return c.FormatDSN()
}

// standing is what a member says at /status.
type standing struct {
	Member   uint64 `json:"member"`
	Starting bool   `json:"starting"`
	Status   struct {
		Term         uint64 `json:"term"`
		Writable     bool   `json:"writable"`
		Provisioning bool   `json:"provisioning"`
		DiskFull     bool   `json:"disk_full"`
	} `json:"status"`
	Members []struct {
		ID      uint64 `json:"id"`
		Addr    string `json:"addr"`
		Learner bool   `json:"learner"`
		State   string `json:"state"`
	} `json:"members"`
}

// status asks a member how it and the others stand.
func (g *group) status(p *pod) (r standing, err error) {
	answer, err := g.http.Get("http://" + p.Status.IP + ":18080/status")
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	return r, json.NewDecoder(answer.Body).Decode(&r)
}

// briefly asks as status does, and gives up sooner: who stands still is asked all the time.
func (g *group) briefly(p *pod) (r standing, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Status.IP+":18080/status", nil)
	if err != nil {
		return r, err
	}
	answer, err := g.http.Do(req)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	return r, json.NewDecoder(answer.Body).Decode(&r)
}

// admin runs a command of "trireme admin" against a member.
func (g *group) admin(p *pod, command ...string) error {
	cmd := exec.Command(g.program, append([]string{"admin", "-grpc=" + p.Status.IP + ":17000"}, command...)...)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+g.password)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("admin %s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// members are the pods of members.
func (g *group) members() []pod {
	g.t.Helper()
	pods, err := g.pods(namespace, g.selector)
	g.must(err)
	return pods
}

// leader waits until a member leads.
func (g *group) leader() (leader *pod) {
	g.t.Helper()
	g.eventually("a leader", func() error {
		var term uint64
		for _, p := range g.members() {
			if r, err := g.status(&p); err == nil && r.Status.Writable && r.Status.Term > term {
				leader, term = &p, r.Status.Term
			}
		}
		if leader == nil {
			return errors.New("nobody takes writes")
		}
		return nil
	})
	return leader
}

// whole waits until the group consists of as many voters, all of which answer, have what is
// committed, and are ready; and of nobody else.
func (g *group) whole(voters int) {
	g.t.Helper()
	g.eventually("the group is whole", func() error {
		pods, err := g.pods(namespace, g.selector)
		if err != nil {
			return err
		}
		if len(pods) != voters {
			return fmt.Errorf("there are %d pods, not %d", len(pods), voters)
		}
		for _, p := range pods {
			if !p.ready() {
				return fmt.Errorf("%s is not ready", p.Meta.Name)
			}
			r, err := g.status(&p)
			if err != nil {
				return err
			}
			if len(r.Members) != voters {
				return fmt.Errorf("%s knows %d members", p.Meta.Name, len(r.Members))
			}
			for _, m := range r.Members {
				if m.Learner || m.State != "ONLINE" {
					return fmt.Errorf("%s: member %d at %s is %s, a learner: %v", p.Meta.Name, m.ID, m.Addr, m.State, m.Learner)
				}
			}
		}
		return nil
	})
}

// equal demands that every acknowledged transfer is there, on every member, that balances are
// those of the ledger, and that all members hold the same.
func (g *group) equal(b *bank) {
	g.t.Helper()
	acked, letGo := b.hold()
	defer letGo()
	var want [2]string
	for i, p := range g.members() {
		db, err := sql.Open("mysql", g.dsn(&p))
		g.must(err)
		var got [2]string
		// What was acknowledged is committed; a follower may have to apply it yet.
		g.eventually(p.Meta.Name+" holds what the first does", func() error {
			conn, err := db.Conn(context.Background())
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := conn.ExecContext(context.Background(), "SET SESSION trireme_read_consistency = 'STRONG'"); err != nil {
				return err
			}
			for i, query := range []string{"SELECT id, balance FROM bank.account ORDER BY id", "SELECT id, source, target, amount FROM bank.ledger ORDER BY id"} {
				if got[i], err = servers.Rows(conn, query); err != nil {
					return err
				}
			}
			if i > 0 && got != want {
				return errors.New("it holds something else")
			}
			return nil
		})
		_ = db.Close()
		if i == 0 {
			want = got
		}
	}
	g.audit(want[0], want[1], acked)
}

// audit looks whether what members hold is what programs were told.
func (g *group) audit(balances, ledger string, acked []int64) {
	g.t.Helper()
	there, expected := map[int64]bool{}, map[int64]int64{}
	for line := range strings.Lines(ledger) {
		var id, source, target, amount int64
		if _, err := fmt.Sscan(line, &id, &source, &target, &amount); err != nil {
			g.t.Fatalf("%q: %v", line, err)
		}
		there[id] = true
		expected[source] -= amount
		expected[target] += amount
	}
	found := 0
	for line := range strings.Lines(balances) {
		var id, balance int64
		if _, err := fmt.Sscan(line, &id, &balance); err != nil {
			g.t.Fatalf("%q: %v", line, err)
		}
		found++
		if want := opening + expected[id]; balance != want {
			g.t.Errorf("account %d has %d; by the ledger it is %d", id, balance, want)
		}
	}
	lost := 0
	for _, id := range acked {
		if !there[id] {
			lost++
		}
	}
	if lost > 0 || found != accounts {
		g.t.Errorf("%d of %d acknowledged transfers are lost; %d accounts are there", lost, len(acked), found)
	}
}
