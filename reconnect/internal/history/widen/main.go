// Command widen writes copies of the sources of conn, dialer and reconnect, and of all below them, in which other goroutines
// may run before each lock, each atomic value and each channel operation, and after each unlock. So histories reach orders of
// events that the scheduler rarely chooses. In exchange, a history does not replay.
//
//	go run ./reconnect/internal/history/widen -o DIR
//	go test -vet=off -overlay DIR/overlay.json ./reconnect/internal/history -run TestHistories -histories 3000
//
// Run it at the root of the module. (vet wants each package to have a directory. The one that conn and dialer import has none.)
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	module = "github.com/redial-go/redial/"
	inside = "reconnect/internal/history/yield" // what the packages below reconnect import
	beside = "internal/yield"                   // what the others import: a copy, which is in overlay.json only
)

func main() {
	dir := flag.String("o", "", "the directory for the copies; it must exist")
	flag.Parse()
	if *dir == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := widen(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "widen:", err)
		os.Exit(1)
	}
}

// widen writes the copies, and overlay.json, which names them.
func widen(dir string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	replace, places := make(map[string]string), 0
	for _, top := range []string{"conn", "dialer", "reconnect"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "history" || d.Name() == "testdata" || nested(path)):
				return filepath.SkipDir
			case d.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
				return nil
			}
			imports := beside
			if top == "reconnect" {
				imports = inside
			}
			text, n, err := widened(path, imports)
			if err != nil || n == 0 {
				return err
			}
			places += n
			to := filepath.Join(dir, strings.ReplaceAll(path, string(filepath.Separator), "_"))
			replace[filepath.Join(root, path)] = to
			return os.WriteFile(to, text, 0o644)
		})
		if err != nil {
			return err
		}
	}
	fmt.Printf("%d places in %d files\n", places, len(replace))
	replace[filepath.Join(root, beside, "yield.go")] = filepath.Join(root, inside, "yield.go")
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644)
}

// nested reports whether a directory is a module of its own.
func nested(path string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// widened returns a source with calls of Here, from the package that it imports for that, and how many calls there are.
// Each statement stays in its line.
func widened(path, imports string) (text []byte, places int, err error) {
	text, err = os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, 0, err
	}
	var at []insertion
	ast.Inspect(f, func(n ast.Node) bool {
		for _, s := range statements(n) {
			if meets(s) {
				at = append(at, insertion{files.Position(s.Pos()).Offset, "historyYield.Here(); "})
			}
			if d, ok := s.(*ast.DeferStmt); ok && unlocks(d.Call) { // so that it runs after the lock is free
				at = append(at, insertion{files.Position(s.Pos()).Offset, "defer historyYield.Here(); "})
			} else if x, ok := s.(*ast.ExprStmt); ok && unlocks(x.X) {
				at = append(at, insertion{files.Position(s.End()).Offset, "; historyYield.Here()"})
			}
		}
		return true
	})
	if len(at) == 0 {
		return nil, 0, nil
	}
	slices.SortStableFunc(at, func(a, b insertion) int { return a.offset - b.offset })
	var out bytes.Buffer
	name := files.Position(f.Name.End()).Offset
	out.Write(text[:name])
	fmt.Fprintf(&out, "; import historyYield %q", module+imports)
	from := name
	for _, i := range at {
		out.Write(text[from:i.offset])
		out.WriteString(i.text)
		from = i.offset
	}
	out.Write(text[from:])
	return out.Bytes(), len(at), nil
}

// insertion is a text that is put into a source.
type insertion struct {
	offset int
	text   string
}

// unlocks reports whether an expression is a call that frees a lock.
func unlocks(x ast.Expr) bool {
	c, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := c.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "Unlock" || f.Sel.Name == "RUnlock")
}

// statements returns the list of statements of a node.
func statements(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		if len(n.List) > 0 {
			switch n.List[0].(type) {
			case *ast.CaseClause, *ast.CommClause: // the body of a switch or a select
				return nil
			}
		}
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// meets reports whether another goroutine may be met in a statement itself, without the statements in it.
func meets(s ast.Stmt) (yes bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt, *ast.FuncLit:
			return false
		case *ast.SelectStmt, *ast.SendStmt:
			yes = true
		case *ast.UnaryExpr:
			yes = yes || n.Op == token.ARROW
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(meetings, f.Sel.Name) {
				yes = true
			}
		}
		return !yes
	})
	return yes
}

// meetings are the methods of locks and of atomic values.
var meetings = []string{"Lock", "Unlock", "TryLock", "Load", "Store", "Swap", "CompareAndSwap", "Add", "Or", "And", "Set", "Stop", "Broadcast", "Signal"}
