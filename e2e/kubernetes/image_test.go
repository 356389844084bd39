//go:build kubernetes

package kubernetes

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// pauseImage holds the namespaces of every pod.
const pauseImage = "trireme.test/pause:1"

// imageOptions say what an image is.
type imageOptions struct {
	Tags            []string
	User            string
	Env, Entrypoint []string
	Cmd             []string
	Files           map[string]string // where they come from by where they go; directories with all that is in them
}

// writeImage writes an image of one layer, as `docker save` does.
func writeImage(file string, o imageOptions) error {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for to, from := range o.Files {
		if err := addFiles(w, from, to); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"architecture": "amd64", "os": "linux",
		"config": map[string]any{"User": o.User, "Env": o.Env, "Entrypoint": o.Entrypoint, "Cmd": o.Cmd},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer.Bytes())}}})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": o.Tags, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w = tar.NewWriter(f)
	for _, part := range []struct {
		name string
		data []byte
	}{{"config.json", config}, {"layer.tar", layer.Bytes()}, {"manifest.json", manifest}} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: part.name, Mode: 0o644, Size: int64(len(part.data))}))
		_, e := w.Write(part.data)
		err = errors.Join(err, e)
	}
	return errors.Join(err, w.Close(), f.Close())
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// addFiles adds a file, or what is in a directory, with their modes and owners.
func addFiles(w *tar.Writer, from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.Join(to, rel), "/")
		if name == "" {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		h, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		h.Name, h.Uname, h.Gname = name, "", ""
		if err := w.WriteHeader(h); err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
}

// buildImage makes the image of a tree's Dockerfile without Docker: its last stage has to be files
// of the one before on an empty base, which its commands put into /out. They stay in a
// directory beside the image's file, which is returned.
func buildImage(root, file string, env []string, tags ...string) (out string, size int64, err error) {
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		return "", 0, err
	}
	if out, err = os.MkdirTemp(filepath.Dir(file), "image-"); err != nil {
		return "", 0, err
	}
	o := imageOptions{Tags: tags, Files: map[string]string{"/": out}}
	copied := false
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "RUN":
			if !strings.Contains(rest, "/out") {
				continue // modules, which are here
			}
			run := exec.Command("bash", "-ec", regexp.MustCompile(`/out\b`).ReplaceAllString(rest, out))
			run.Dir, run.Env = root, append(os.Environ(), env...)
			// Modes of what is made are those of a build in Docker.
			syscall.Umask(0o022)
			if said, err := run.CombinedOutput(); err != nil {
				return "", 0, fmt.Errorf("%s: %w\n%s", rest, err, said)
			}
		case "COPY":
			copied = copied || rest == "--from=build /out/ /"
		case "USER":
			o.User = rest
		case "ENV":
			o.Env = append(o.Env, strings.Fields(rest)...)
		case "ENTRYPOINT":
			err = json.Unmarshal([]byte(rest), &o.Entrypoint)
		case "CMD":
			err = json.Unmarshal([]byte(rest), &o.Cmd)
		}
		if err != nil {
			return "", 0, fmt.Errorf("Dockerfile: %s: %w", strings.TrimSpace(line), err)
		}
	}
	if !strings.Contains(string(text), "\nFROM scratch\n") || !copied {
		return "", 0, errors.New("Dockerfile: its image is not /out on an empty base any more")
	}
	if err := writeImage(file, o); err != nil {
		return "", 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", 0, err
	}
	return out, info.Size(), nil
}
