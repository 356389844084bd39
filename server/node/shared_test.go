package node

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/server/config"
)

// TestSettingsShow: a setting that is a variable of sessions by its name is what SELECT @@name tells.
func TestSettingsShow(t *testing.T) {
	elsewhere := map[string]bool{} // asked of the node, the engine or the group
	for _, name := range []string{"datadir", "port", "ssl_ca", "ssl_cert", "ssl_key", "ssl_crl", "tls_version", "innodb_buffer_pool_size", "max_binlog_size",
		"binlog_expire_logs_seconds", "binlog_keep_size", "binlog_large_commit_threshold"} {
		elsewhere[name] = true
	}
	given := map[string]string{"bind_address": "10.0.0.1", "connect_timeout": "7s", "innodb_flush_log_at_timeout": "3s", "innodb_flush_method": "O_DIRECT",
		"innodb_lock_wait_timeout": "9s", "innodb_io_capacity": "300", "innodb_io_capacity_max": "30000", "innodb_redo_log_capacity": "16777216", "innodb_log_buffer_size": "2097152",
		"binlog_row_image": "full", "require_secure_transport": "ON"}
	want := map[string]string{"connect_timeout": "7", "innodb_flush_log_at_timeout": "3", "innodb_lock_wait_timeout": "9", "binlog_row_image": "FULL",
		"require_secure_transport": "1"}
	r := sessiontest.New(t, sessiontest.Options{})
	s := r.Open(session.ConnectionInfo{})
	compared := 0
	for _, section := range config.Sections {
		for _, setting := range section.Settings {
			name := setting.Name
			if r.Text(s, "SELECT @@"+name) == fmt.Sprintf("error 1193 (HY000): Unknown system variable '%s'\n", name) || elsewhere[name] {
				continue
			}
			text := cmp.Or(given[name], fmt.Sprint(max(setting.Min*2, 16)))
			if setting.Kind == config.Bytes {
				text = cmp.Or(given[name], fmt.Sprint(max(setting.Min*2, 1<<20)))
			}
			cfg, err := config.Load(config.Sources{Args: []string{"--" + name + "=" + text}})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			node := sessiontest.New(t, sessiontest.Options{Variables: cfg.Variables()})
			if got := node.Text(node.Open(session.ConnectionInfo{}), "SELECT @@"+name+" AS v"); got != "v\n"+cmp.Or(want[name], text)+"\n" {
				t.Errorf("%s = %s: %s", name, text, got)
			}
			compared++
		}
	}
	if compared < 15 {
		t.Errorf("only %d settings are variables", compared)
	}
}
