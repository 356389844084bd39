package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var files embed.FS

// page is a file of the console.
type page struct {
	content []byte
	kind    string
	tag     string // of the content
}

var kinds = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// pages are all files, by their paths under Path.
var pages = func() map[string]page {
	all := map[string]page{}
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		sum := sha256.Sum256(b)
		all[strings.TrimPrefix(name, "static/")] = page{b, kinds[path.Ext(name)], `"` + hex.EncodeToString(sum[:12]) + `"`}
		return err
	})
	if err != nil {
		panic("console: " + err.Error()) // the files are part of the program
	}
	return all
}()

// serveStatic answers GET of the pages. They may be kept, but are asked for anew, so that they
// are always those of the node's version.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, Path)
	if name == "" {
		name = "index.html"
	}
	p, ok := pages[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", p.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", p.tag)
	if r.Header.Get("If-None-Match") == p.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(p.content)
}

// refuseStarting answers while there is no console yet, or no more.
func refuseStarting(w http.ResponseWriter) {
	protect(w.Header())
	w.Header().Set("Refresh", "2")
	answer(w, http.StatusServiceUnavailable, map[string]*problem{"error": errStarting})
}

// Starting answers for a node that has no console yet.
func Starting(w http.ResponseWriter, _ *http.Request) { refuseStarting(w) }
