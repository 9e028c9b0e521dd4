package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// number is the variable of the environment that chooses one of the mutants in a binary.
const number = "REDIAL_MUTANT"

// made is a package with the mutants that the command makes of it. A mutant of a function is a copy of the function. All these
// copies are in one binary, and the original function calls the copy that the environment chooses. A mutant of a declaration
// of the package, such as a constant, is a binary of its own.
type made struct {
	pkg     string // from the root of the repository
	dir     string // for the files of this package's mutants
	sources map[string][]byte
	set     *token.FileSet
	syntax  map[string]*ast.File
	imports types.Importer
	found   []*edit // some of them do not compile
	edits   []*edit // of found, those that run
}

// makeMutants makes every step-th mutant of a package, without those that do not compile and those
// that -only leaves out. A package has thousands, so that nothing is done for the others.
func makeMutants(ctx context.Context, dir, pkg string, step int) (*made, error) {
	exports, sources := map[string]string{}, map[string][]string{}
	if err := list(ctx, ".", exports, sources); err != nil {
		return nil, err
	}
	m := &made{pkg: filepath.Clean(pkg), dir: dir, sources: map[string][]byte{}, set: token.NewFileSet(), syntax: map[string]*ast.File{}}
	if len(sources[m.pkg]) == 0 {
		return nil, fmt.Errorf("there is no package in %s of the root module", pkg)
	}
	m.imports = importer.ForCompiler(m.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, name := range sources[m.pkg] {
		file := filepath.Join(m.pkg, name)
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		syntax, err := parser.ParseFile(m.set, file, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		m.sources[file], m.syntax[file] = source, syntax
		m.found = append(m.found, find(m.set, file, source, syntax)...)
	}
	for i := 0; i < len(m.found); i += step {
		e := m.found[i]
		part := func(s string) bool { return strings.Contains(e.name(), s) }
		if slices.ContainsFunc(strings.Split(*only, ","), part) && m.compiles(e) {
			m.edits = append(m.edits, e)
		}
	}
	return m, ctx.Err()
}

// compiles reports whether the package is correct with an edit.
func (m *made) compiles(e *edit) bool {
	changed, err := parser.ParseFile(m.set, e.file, splice(m.sources[e.file], e.start, e.end, e.text), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := []*ast.File{changed}
	for file, syntax := range m.syntax {
		if file != e.file {
			files = append(files, syntax)
		}
	}
	config := types.Config{Importer: m.imports}
	_, err = config.Check(m.pkg, m.set, files, nil)
	return err == nil
}

// splice returns source with text in the place of the bytes from start to end.
func splice(source []byte, start, end int, text string) []byte {
	return []byte(string(source[:start]) + text + string(source[end:]))
}

// overlay writes the files of the package with all mutants in functions, and returns the file for -overlay.
func (m *made) overlay() (string, error) {
	replace := map[string]string{}
	for file, source := range m.sources {
		text, err := m.rewrite(file, source)
		if err != nil {
			return "", err
		}
		if err := write(replace, m.dir, file, text); err != nil {
			return "", err
		}
	}
	chosen := fmt.Sprintf(chooser, m.name(), number, reached, len(m.functions())+1)
	if err := write(replace, m.dir, filepath.Join(m.pkg, "mutantatwork.go"), []byte(chosen)); err != nil {
		return "", err
	}
	return index(m.dir, replace)
}

// alone writes the file of one edit to a directory, and returns the file for -overlay.
func (m *made) alone(dir string, e *edit) (string, error) {
	replace := map[string]string{}
	if err := write(replace, dir, e.file, splice(m.sources[e.file], e.start, e.end, e.text)); err != nil {
		return "", err
	}
	return index(dir, replace)
}

func (m *made) name() string {
	for _, syntax := range m.syntax {
		return syntax.Name.Name
	}
	return ""
}

func write(replace map[string]string, dir, file string, text []byte) error {
	original, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	replace[original] = filepath.Join(dir, filepath.Base(file))
	return os.WriteFile(replace[original], text, 0o666)
}

func index(dir string, replace map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o666)
}
