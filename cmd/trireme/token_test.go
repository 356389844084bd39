package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStatusToken(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"cluster": "c"}`))
	}))
	defer s.Close()
	addr, file := s.Listener.Addr().String(), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := askStatus(addr, file); err != nil || r.Cluster != "c" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := askStatus(addr, ""); err == nil || !strings.Contains(err.Error(), "--http-token-file") {
		t.Errorf("without a token: %v", err)
	}
	if _, err := askStatus(addr, file+"x"); err == nil || !strings.Contains(err.Error(), "--http-token-file") {
		t.Errorf("without the file: %v", err)
	}
	// Before an upgrade that changes it nodes want one or the other.
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range []string{file, file + "," + other, other + "," + file, file + "x," + file} {
		if r, err := askWithTokens(addr, files); err != nil || r.Cluster != "c" {
			t.Errorf("%s: %+v, %v", files, r, err)
		}
	}
	for _, files := range []string{"", other, file + "x"} {
		if _, err := askWithTokens(addr, files); !errors.Is(err, errWantsToken) {
			t.Errorf("%q: %v", files, err)
		}
	}
}
