//go:build clients

package clients

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPrograms runs the programs of other languages, each against a schema of its own.
func TestPrograms(t *testing.T) {
	server := serve(t, 1).Nodes[0]
	python, node := fromRoot("bin/clients/python/bin/python"), []string{"NODE_PATH=" + fromRoot("bin/clients/node/node_modules")}
	classes := fromRoot("bin/clients/java/clients.jar") + ":" + fromRoot("bin/clients/java/lib") + "/*"
	java := []string{"java", "-XX:TieredStopAtLevel=1", "-Djava.util.logging.config.file=" + fromRoot("e2e/clients/java/logging.properties"), "-cp", classes}
	for _, p := range []struct {
		name, dir string
		env, args []string
	}{
		{"PyMySQL", "python", nil, []string{python, "pymysql_text.py"}},
		{"Connector/Python", "python", nil, []string{python, "connector.py"}},
		{"SQLAlchemy", "python", nil, []string{python, "orm.py"}},
		{"mysql2", "node", node, []string{"node", "driver.js"}},
		{"Sequelize", "node", node, []string{"node", "orm.js"}},
		{"Connector/J", "java", nil, append(java, "Jdbc", "mysql")},
		{"MariaDB Connector/J", "java", nil, append(java, "Jdbc", "mariadb")},
		{"Hibernate", "java", nil, append(java, "Orm")},
	} {
		t.Run(strings.ReplaceAll(p.name, "/", " "), func(t *testing.T) {
			program(t, server.Port, filepath.Join(".", p.dir), p.env, p.args[0], p.args[1:]...)
		})
	}
}
