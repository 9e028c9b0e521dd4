package main

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A walk is what a reader meets on one way through the library: how many calls, of how many functions, in
// how many files.
type walk struct {
	name                    string
	calls, functions, files int
}

func (w walk) String() string {
	return fmt.Sprintf("%s: %d calls of %d functions in %d files", w.name, w.calls, w.functions, w.files)
}

// longestWalks are the ceilings of the walks. Each only falls.
var longestWalks = []walk{
	{"a message by push", 18, 18, 6},
	{"a message by Messages", 54, 44, 9},
	{"a Write", 15, 12, 5},
	{"a Send", 72, 55, 14},
	{"the end of a session", 125, 95, 28},
	{"a redial", 108, 84, 27},
	{"a rotation", 365, 239, 41},
	{"the first dial through a gate", 186, 130, 34},
}

// tooLong returns each walk that is longer than its ceiling.
func tooLong(walks []walk) (list []string) {
	for _, most := range longestWalks {
		i := slices.IndexFunc(walks, func(w walk) bool { return w.name == most.name })
		switch {
		case i < 0:
			list = append(list, fmt.Sprintf("no walk %q", most.name))
		case walks[i].calls > most.calls || walks[i].functions > most.functions || walks[i].files > most.files:
			ceiling := fmt.Sprintf("ceiling: %d calls, %d functions, %d files", most.calls, most.functions, most.files)
			list = append(list, fmt.Sprintf("%v; %s", walks[i], ceiling))
		}
	}
	return list
}

// The package that notes calls, and the test that plays the scenes. The test uses package scene.
var (
	//go:embed walks/trace.go
	tracer []byte
	//go:embed walks/walks_test.go
	scenes []byte
)

// readWalks takes the walks, in a copy of the module in which each function notes its calls. It takes them three
// times, or once if dir is not empty: then each walk becomes a file there.
func readWalks(dir string) (list []walk, err error) {
	where, err := os.MkdirTemp("", "walks")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(where)
	for _, name := range []string{"go.mod", "go.sum", "internal", "conn", "dialer", "reconnect"} {
		if err := copyTraced(where, name); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(filepath.Join(where, "walktrace"), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(where, "walktrace/trace.go"), tracer, 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(where, "reconnect/walks_test.go"), scenes, 0o644); err != nil {
		return nil, err
	}
	count := "-count=3"
	if dir != "" { // for the texts of one play
		count = "-count=1"
	}
	test := exec.Command("go", "test", "-vet=off", count, "-timeout=2m", "-run=^TestWalks$", "-v", "./reconnect")
	test.Dir = where
	if dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		test.Env = append(os.Environ(), "WALKS="+dir)
	}
	text, err := test.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("walks: %w\n%s", err, text)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if fields[0] != "walk" {
			continue
		}
		w := walk{name: fields[1]}
		if _, err := fmt.Sscan(strings.Join(fields[2:], " "), &w.calls, &w.functions, &w.files); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		// Goroutines that meet in another order may make a walk a few calls longer: the shortest one counts.
		switch i := slices.IndexFunc(list, func(x walk) bool { return x.name == w.name }); {
		case i < 0:
			list = append(list, w)
		case w.calls < list[i].calls:
			list[i] = w
		}
	}
	return list, nil
}

// copyTraced copies a file or a directory. The functions of the library note their calls.
func copyTraced(where, name string) error {
	return filepath.WalkDir(name, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(where, name), 0o755)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		library := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
			!strings.HasPrefix(name, "conn/conntest/") && !strings.Contains(name, "/conntests/")
		if library {
			if text, err = traced(name, text); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(where, name), text, 0o644)
	})
}

// traced returns a source file with a call of walktrace.Enter at the start of each function.
func traced(name string, text []byte) ([]byte, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out []byte
	copied := 0
	insert := func(at token.Pos, what string) {
		to := set.Position(at).Offset
		out = append(append(out, text[copied:to]...), what...)
		copied = to
	}
	for _, d := range f.Decls {
		function, ok := d.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		if copied == 0 {
			insert(f.Name.End(), "; import \"github.com/redial-go/redial/walktrace\"")
		}
		called := function.Name.Name
		if function.Recv != nil {
			called = receiver(function) + "." + called
		}
		insert(function.Body.Lbrace+1, fmt.Sprintf("defer walktrace.Enter(%q)();", name+" "+called))
	}
	return append(out, text[copied:]...), nil
}
