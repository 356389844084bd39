package servers

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/triremedb/trireme/e2e/servers/ports"
)

// galeraLibrary is where Debian's package galera-4 has it.
const galeraLibrary = "/usr/lib/galera/libgalera_smm.so"

// mysqlUser is who runs the nodes if root starts them: a node that joins gets its data by
// rsync, which as root would write as nobody.
const mysqlUser = "mysql"

// StartGalera starts a cluster of n servers with settings (--name=value) and waits until
// all have joined and take writes. Their logs are in dir.
func StartGalera(dir string, limit time.Duration, n int, settings ...string) (nodes []*MariaDB, err error) {
	defer func() {
		if err != nil {
			for _, m := range nodes {
				m.Remove()
			}
		}
	}()
	if err := FindMariaDB(true); err != nil {
		return nil, err
	}
	var given [][2]int
	var addresses []string
	for range n {
		var p [2]int
		for i := range p {
			if p[i], err = ports.Free(); err != nil {
				return nil, err
			}
		}
		given, addresses = append(given, p), append(addresses, fmt.Sprintf("127.0.0.1:%d", p[0]))
	}
	for i := range n {
		m, err := newMariaDB(mysqlUser)
		nodes = append(nodes, m)
		if err != nil {
			return nodes, err
		}
		args := append([]string{"--wsrep-on=ON", "--wsrep-provider=" + galeraLibrary, "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
			"--wsrep-cluster-address=gcomm://" + strings.Join(addresses, ","), "--wsrep-node-address=127.0.0.1",
			fmt.Sprintf("--wsrep-provider-options=gmcast.listen_addr=tcp://%s;ist.recv_addr=127.0.0.1:%d", addresses[i], given[i][1]),
			fmt.Sprintf("--server-id=%d", i+1)}, settings...)
		if i == 0 {
			args = append(args, "--wsrep-new-cluster")
		}
		if err := m.start(filepath.Join(dir, fmt.Sprintf("galera%d.log", i+1)), limit, args...); err != nil {
			return nodes, err
		}
	}
	return nodes, awaitGalera(nodes[0], n, limit)
}

// awaitGalera waits until a cluster has n members.
func awaitGalera(m *MariaDB, n int, limit time.Duration) error {
	db, err := sql.Open("mysql", m.DSN("", nil))
	if err != nil {
		return err
	}
	defer db.Close()
	for until := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		var name string
		var size int
		err := db.QueryRow("SHOW STATUS LIKE 'wsrep_cluster_size'").Scan(&name, &size)
		if err == nil && size == n {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("galera has %d members, not %d: %w", size, n, err)
		}
	}
}
