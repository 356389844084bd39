package file

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutDescriptors lets the process have no more descriptors until the returned function is called.
func withoutDescriptors(t *testing.T) func() {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
			t.Error(err)
		}
	}
}

// TestNoDescriptors: what opens something waits for a descriptor, and says so; where none comes nothing has happened.
func TestNoDescriptors(t *testing.T) {
	d := OS(t.TempDir())
	var free func()
	said := 0
	d.OnScarce(func(_ string, err error, times int) bool {
		if said++; times == 3 {
			free()
		}
		if !errors.Is(err, unix.EMFILE) {
			t.Error(err)
		}
		return times < 4
	})
	for i, call := range []func() error{
		func() error {
			f, err := d.Open("f", OpenOptions{Exclusive: true})
			if err == nil {
				err = f.Close()
			}
			return err
		},
		func() error {
			f, err := d.Open("direct", OpenOptions{Exclusive: true, Direct: true})
			if err == nil {
				err = f.Close()
			}
			return err
		},
		func() error { return d.SyncDir(".") },
		func() error { _, err := d.List("."); return err },
	} {
		free = withoutDescriptors(t)
		err := call()
		free()
		if err != nil || said != 3*(i+1) {
			t.Errorf("call %d: %v, said %d times", i, err, said)
		}
	}
	d.OnScarce(func(_ string, _ error, times int) bool { return times < 2 })
	free = withoutDescriptors(t)
	_, err := d.Open("g", OpenOptions{Create: true})
	free()
	if !errors.Is(err, ErrNoDescriptors) || !errors.Is(err, unix.EMFILE) {
		t.Errorf("no descriptor came: %v", err)
	}
	if there, err := d.Exists("g"); there || err != nil {
		t.Errorf("a file was made without a descriptor: %v, %v", there, err)
	}
}
