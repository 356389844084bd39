package config

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// files is a file system with the given texts.
func files(texts map[string]string) fs.FS {
	root := fstest.MapFS{}
	for name, text := range texts {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestContainerMemory(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		limit int64
		file  string
	}{
		{"no control groups", nil, 0, ""},
		{"version 2, its own name space", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n",
		}, 512 * mib, "/sys/fs/cgroup/memory.max"},
		{"version 2, no limit", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.high": "max\n",
		}, 0, ""},
		{"version 2, slowed down before", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n", "sys/fs/cgroup/memory.high": "268435456\n",
		}, 256 * mib, "/sys/fs/cgroup/memory.high"},
		{"version 2, a group around it has less", map[string]string{
			"proc/self/cgroup": "0::/kubepods.slice/pod1/c\n",
			"sys/fs/cgroup/kubepods.slice/pod1/c/memory.max":       "max\n",
			"sys/fs/cgroup/kubepods.slice/pod1/memory.max":         "1073741824\n",
			"sys/fs/cgroup/kubepods.slice/memory.max":              "8589934592\n",
			"sys/fs/cgroup/kubepods.slice/pod1/another/memory.max": "1048576\n",
		}, gib, "/sys/fs/cgroup/kubepods.slice/pod1/memory.max"},
		{"version 2, a path with colons", map[string]string{
			"proc/self/cgroup": "0::/a:b\n", "sys/fs/cgroup/a:b/memory.max": "1073741824\n",
		}, gib, "/sys/fs/cgroup/a:b/memory.max"},
		{"version 1", map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/docker/x\n9:memory:/docker/x\n1:name=systemd:/docker/x\n0::/system.slice\n",
			"sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n",
		}, 2 * gib, "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes"},
		{"version 1, the path is of outside", map[string]string{
			"proc/self/cgroup":                           "9:memory:/docker/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
		}, 2 * gib, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"version 1, no limit", map[string]string{
			"proc/self/cgroup":                           "9:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, ""},
		{"a path that leads out", map[string]string{
			"proc/self/cgroup": "0::/../../etc\n", "sys/fs/cgroup/memory.max": "1073741824\n",
		}, gib, "/sys/fs/cgroup/memory.max"},
		{"nonsense", map[string]string{
			"proc/self/cgroup": "nonsense\n0:\n::\n0::\n", "sys/fs/cgroup/memory.max": "-5\n", "sys/fs/cgroup/memory.high": "99999999999999999999\n",
		}, 0, ""},
	} {
		limit, file := ContainerMemory(files(c.files))
		if limit != c.limit || file != c.file {
			t.Errorf("%s: %d of %q instead of %d of %q", c.name, limit, file, c.limit, c.file)
		}
	}
}

func TestMemory(t *testing.T) {
	container := func(limit string) fs.FS {
		return files(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": limit})
	}
	for _, c := range []struct {
		args  string
		limit string // of the container
		heap  int64
		tight bool
		err   string
	}{
		{"", "max", 0, false, ""},
		{"--innodb-buffer-pool-size=1T", "max", 0, false, ""},
		// 128 MiB, and 8 of temporary tables, with what describes them are 143319367 bytes; 32 MiB are left aside.
		{"", "268435456", 268435456 - 143319367 - 32*mib, false, ""},
		{"--innodb-buffer-pool-size=4G", "8589934592", 8589934592 - (4*gib + 8*mib + (4*gib+8*mib)/200) - 8589934592/10, false, ""},
		{"--innodb-buffer-pool-size=100M", "134217728", 80 * mib, true, ""},
		{"--innodb-buffer-pool-size=100M --innodb-log-buffer-size=1M", "134217728", 65 * mib, true, ""},
		{"", "134217728", 0, false, "innodb_buffer_pool_size is 128M, but all memory of the process is limited to 128M (/sys/fs/cgroup/memory.max)"},
		{"--innodb-buffer-pool-size=16G", "8589934592", 0, false, "is 16G, but all memory of the process is limited to 8G"},
		// The setting counts, and not the container.
		{"--memory-limit=256M", "134217728", 268435456 - 143319367 - 32*mib, false, ""},
		{"--memory-limit=256M", "max", 268435456 - 143319367 - 32*mib, false, ""},
		{"--memory-limit=64M", "max", 0, false, "limited to 64M (memory_limit)"},
	} {
		cfg, err := Load(Sources{Args: strings.Fields(c.args)})
		if err != nil {
			t.Fatal(err)
		}
		m, err := cfg.Memory(container(c.limit))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s, container %s: %v", c.args, c.limit, err)
			}
			continue
		}
		if err != nil || m.Heap != c.heap || m.Tight != c.tight {
			t.Errorf("%s, container %s: %+v, %v; want a heap of %d", c.args, c.limit, m, err, c.heap)
		}
	}
}

// A part of the memory is that of the tightest limit that there is.
func TestShareOfMemory(t *testing.T) {
	machine := map[string]string{"proc/meminfo": "MemTotal:        4194304 kB\nMemFree: 17 kB\n"}
	container := map[string]string{"proc/meminfo": machine["proc/meminfo"], "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "2147483648\n"}
	for _, c := range []struct {
		name string
		root map[string]string
		args []string
		want int64
		err  string
	}{
		{"of the machine", machine, []string{"--innodb-buffer-pool-size=50%"}, 2 * gib, ""},
		{"of the container", container, []string{"--innodb-buffer-pool-size=50%"}, gib, ""},
		{"of what is given", container, []string{"--innodb-buffer-pool-size=50%", "--memory-limit=1G"}, 512 * mib, ""},
		{"whole mebibytes", container, []string{"--innodb-buffer-pool-size=33%"}, 675 * mib, ""},
		{"bytes", container, []string{"--innodb-buffer-pool-size=300M"}, 300 * mib, ""},
		{"nothing", container, []string{"--innodb-buffer-pool-size=0%"}, 0, "from 1% to 90%"},
		{"all", container, []string{"--innodb-buffer-pool-size=100%"}, 0, "from 1% to 90%"},
		{"of nothing known", nil, []string{"--innodb-buffer-pool-size=50%"}, 0, "the least is 1M"},
		{"no part of the memory", container, []string{"--max-binlog-size=50%"}, 0, "a number of bytes"},
	} {
		cfg, err := Load(Sources{Args: c.args, Root: files(c.root)})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || cfg.Int("innodb_buffer_pool_size") != c.want {
			t.Errorf("%s: %d, not %d (%v)", c.name, cfg.Int("innodb_buffer_pool_size"), c.want, err)
		}
	}
}

// The limit of a container elsewhere counts in place of that of this process.
func TestContainerElsewhere(t *testing.T) {
	root := files(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "134217728\n", "proc/meminfo": "MemTotal: 8388608 kB\n"})
	for _, c := range []struct {
		container, pool, limit int64
	}{{0, 64 * mib, 128 * mib}, {2 * gib, gib, 2 * gib}, {-1, 4 * gib, 0}} {
		cfg, err := Load(Sources{Args: []string{"--innodb-buffer-pool-size=50%", "--check-config"}, Root: root, Container: c.container})
		if err != nil || !cfg.CheckConfig || cfg.Int("innodb_buffer_pool_size") != c.pool {
			t.Errorf("%d: %v, a pool of %d", c.container, err, cfg.Int("innodb_buffer_pool_size"))
		}
		if m, err := cfg.Memory(root); err != nil || m.Limit != c.limit {
			t.Errorf("%d: %+v, %v", c.container, m, err)
		}
	}
}
