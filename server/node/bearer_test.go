package node

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestBearer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	h := bearer(file)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	ask := func(header string) int {
		r := httptest.NewRequest("GET", "/metrics", nil)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file, header string
		want         int
	}{
		{"", "Bearer ", 503}, {"", "", 503},
		{"secret\n", "", 401}, {"secret\n", "Bearer ", 401}, {"secret\n", "Bearer Secret", 401}, {"secret\n", "secret", 401}, {"secret\n", "Bearer secret", 204},
		{"other\n", "Bearer secret", 401}, {"other\n", "Bearer other", 204},
	} {
		if write(c.file); ask(c.header) != c.want {
			t.Errorf("%q with %q: %d, want %d", c.header, c.file, ask(c.header), c.want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := ask("Bearer other"); got != 503 {
		t.Errorf("without its file: %d", got)
	}
}
