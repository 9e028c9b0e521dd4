package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
)

// face is what the public packages of the root module show to users.
type face struct {
	packages int
	names    int // exported constants, variables, functions, types, methods and fields
	words    int // of go doc -all
}

// largestFace has the ceilings.
var largestFace = face{packages: 16, names: 1326, words: 47738}

// wrong returns each ceiling that is exceeded.
func (f *face) wrong() (list []string) {
	compare := func(what string, n, ceiling int) {
		if n > ceiling {
			list = append(list, fmt.Sprintf("%s: %d, ceiling %d", what, n, ceiling))
		}
	}
	compare("public packages", f.packages, largestFace.packages)
	compare("exported names", f.names, largestFace.names)
	compare("words of documentation", f.words, largestFace.words)
	return list
}

// readFace counts what the public packages show.
func readFace() (*face, error) {
	list, err := output("go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}", "./...")
	if err != nil {
		return nil, err
	}
	f := &face{}
	for line := range strings.Lines(list) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.Contains(path, "/internal/") || strings.Contains(path+"/", "/examples/") {
			continue
		}
		names, err := exported(path, dir)
		if err != nil {
			return nil, err
		}
		text, err := output("go", "doc", "-all", path)
		if err != nil {
			return nil, err
		}
		f.packages++
		f.names += names
		f.words += len(strings.Fields(text))
	}
	return f, nil
}

// exported counts the exported names of a package.
func exported(path, dir string) (n int, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_js.go") {
			continue
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			return 0, err
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, path)
	if err != nil {
		return 0, err
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, name := range v.Names {
				if ast.IsExported(name) {
					n++
				}
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	n += len(p.Funcs)
	for _, t := range p.Types {
		values(t.Consts)
		values(t.Vars)
		n += 1 + len(t.Funcs) + len(t.Methods)
		for _, spec := range t.Decl.Specs {
			n += exportedFields(spec.(*ast.TypeSpec).Type)
		}
	}
	return n, nil
}

// exportedFields counts the exported fields of a struct, with those of structs in it, or the methods of an interface.
func exportedFields(t ast.Expr) (n int) {
	ast.Inspect(t, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncType:
			return false
		case *ast.Field:
			for _, name := range node.Names {
				if name.IsExported() {
					n++
				}
			}
		}
		return true
	})
	return n
}

// output runs a command and returns its standard output.
func output(name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}
