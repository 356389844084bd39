// Command gen writes the weight tables that package collation embeds.
//
// It reads the Unicode Collation Algorithm's allkeys.txt of version 9.0.0 and the list of utf8mb4_general_ci weights kept
// in the package's testdata. It is run by hand through go generate; neither building nor testing needs its input files.
//
// Without -allkeys it writes the files alone that are made of the lists of MySQL's weights in testdata.
//
// Usage:
//
//	go run ./internal/gen -allkeys allkeys-9.0.0.txt -general testdata/general_ci.txt -dir .
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func main() {
	allkeys := flag.String("allkeys", "", "path of allkeys.txt, version 9.0.0")
	general := flag.String("general", "testdata/general_ci.txt", "path of the general_ci weight list")
	dir := flag.String("dir", ".", "directory to write uca900.bin and general_ci.bin to")
	languages := flag.String("languages", "testdata/tailorings.txt", "path of the list of languages")
	secondaries := flag.String("secondaries", "testdata/secondaries.txt", "path of the list of the secondary weights of allkeys.txt")
	flag.Parse()
	if err := tailor(*languages, *secondaries, *dir); err != nil {
		log.Fatal("gen: ", err)
	}
	if *allkeys == "" { // the languages alone
		return
	}
	if err := run(*allkeys, *general, *dir); err != nil {
		log.Fatal("gen: ", err)
	}
}

// tailor writes what is made of lists of MySQL's weights alone: languages.bin, han.bin,
// earlier.bin, eastasian.bin and tolower_ci.bin.
func tailor(languages, secondaries, dir string) error {
	ranks := map[uint32]uint32{0: 0}
	err := eachLine(secondaries, func(line string) error {
		w, err := parseHex(line, 16)
		ranks[w] = uint32(len(ranks))
		return err
	})
	if err != nil {
		return err
	}
	out, err := encodeTailorings(languages, ranks)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "languages.bin"), out, 0o644); err != nil {
		return err
	}
	here := filepath.Dir(languages)
	if out, err = encodeHan(filepath.Join(here, "han_ja.txt"), filepath.Join(here, "han_zh.txt"), filepath.Join(here, "han_gb18030.txt")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "han.bin"), out, 0o644); err != nil {
		return err
	}
	if out, err = encodeEarlier(filepath.Join(here, "uca_earlier.txt")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "earlier.bin"), out, 0o644); err != nil {
		return err
	}
	if out, err = encodeEastAsian(here); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "eastasian.bin"), out, 0o644); err != nil {
		return err
	}
	if out, err = encodeGeneral(filepath.Join(here, "tolower_ci.txt")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tolower_ci.bin"), out, 0o644)
}

func run(allkeys, general, dir string) error {
	elements, err := readAllkeys(allkeys)
	if err != nil {
		return err
	}
	uca, err := encodeUCA(elements)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "uca900.bin"), uca, 0o644); err != nil {
		return err
	}
	gen, err := encodeGeneral(general)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "general_ci.bin"), gen, 0o644)
}

// eachLine calls f with every line of the file, comments and surrounding space removed, empty lines left out.
func eachLine(path string, f func(line string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sc := bufio.NewScanner(file)
	for n := 1; sc.Scan(); n++ {
		line, _, _ := strings.Cut(sc.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return sc.Err()
}

// encodeGeneral packs the code points whose general_ci weight is not their own number: whole pages of 256 weights, each
// preceded by its page number.
func encodeGeneral(path string) ([]byte, error) {
	var pages [256]*[256]uint16
	err := eachLine(path, func(line string) error {
		var cp, weight uint16
		if _, err := fmt.Sscanf(line, "%X %X", &cp, &weight); err != nil {
			return err
		}
		page := pages[cp>>8]
		if page == nil {
			page = new([256]uint16)
			for i := range page {
				page[i] = cp&0xFF00 | uint16(i)
			}
			pages[cp>>8] = page
		}
		page[cp&0xFF] = weight
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out []byte
	for no, page := range pages {
		if page == nil {
			continue
		}
		out = append(out, byte(no))
		for _, w := range page {
			out = binary.LittleEndian.AppendUint16(out, w)
		}
	}
	return out, nil
}

// parseHex parses one hexadecimal number of at most bits bits.
func parseHex(s string, bits int) (uint32, error) {
	v, err := strconv.ParseUint(s, 16, bits)
	return uint32(v), err
}
