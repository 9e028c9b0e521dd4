package main

import (
	"bytes"
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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// patch is a mutant: a unified diff of one or more files, behind a line that names the promise it breaks.
type patch struct {
	name    string
	promise string
	diff    []byte
	files   []string // the files that the patch changes, with their paths from the root of the repository
	overlay string   // the file for -overlay of the go command; compile sets it
	env     []string // more of the environment of its tests
}

// load reads the patches of a directory whose names begin with one of those in only.
func load(dir, only string) (patches []*patch, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		name := strings.TrimSuffix(filepath.Base(file), ".patch")
		wanted := func(s string) bool { return strings.HasPrefix(name, s) }
		if !slices.ContainsFunc(strings.Split(only, ","), wanted) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		promise, diff, found := bytes.Cut(text, []byte("\n--- "))
		if !found || len(bytes.TrimSpace(promise)) == 0 || bytes.Contains(promise, []byte("diff --git")) {
			return nil, fmt.Errorf("%s has no promise, or no diff behind it, or a line of git between the two", file)
		}
		p := &patch{name: name, promise: strings.Join(strings.Fields(string(promise)), " "), diff: append([]byte("--- "), diff...)}
		for line := range bytes.Lines(p.diff) {
			if path, ok := bytes.CutPrefix(line, []byte("+++ b/")); ok {
				p.files = append(p.files, string(bytes.TrimSpace(path)))
			}
		}
		patches = append(patches, p)
	}
	if len(patches) == 0 {
		return nil, fmt.Errorf("no patch in %s", dir)
	}
	return patches, nil
}

// apply writes the changed files to a directory of the patch in dir, and the overlay beside them.
func (p *patch) apply(dir string) error {
	dir = filepath.Join(dir, p.name)
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	hunks, err := parse(string(p.diff))
	if err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	for _, file := range p.files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := source
		for _, h := range hunks {
			if h.file != file {
				continue
			}
			changed, err := h.apply(string(text))
			if err != nil {
				return fmt.Errorf("%s does not apply: %w", p.name, err)
			}
			text = []byte(changed)
		}
		if bytes.Equal(text, source) { // a hunk has taken back what one before it did
			return fmt.Errorf("%s changes nothing in %s", p.name, file)
		}
		changed := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(changed), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(changed, text, 0o666); err != nil {
			return err
		}
		original, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		overlay.Replace[original] = changed
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	p.overlay = filepath.Join(dir, "overlay.json")
	return os.WriteFile(p.overlay, text, 0o666)
}

// module returns the directory of the module that the patch changes, and the package in it.
func (p *patch) module() (module, pkg string) {
	pkg = filepath.Dir(p.files[0])
	for dir := pkg; dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			module = dir
			break
		}
	}
	rel, err := filepath.Rel("./"+module, pkg)
	if err != nil {
		rel = pkg
	}
	return "./" + module, "./" + rel
}

// compile applies all patches, and checks the types of the packages that they change. That takes a moment for each, because
// the packages that are imported are read from the compiler's export data.
func compile(ctx context.Context, dir string, patches []*patch) error {
	exports := map[string]string{}
	listed := map[string]bool{}
	sources := map[string][]string{} // by the directory of the package
	var wrong []string
	for _, p := range patches {
		if err := p.apply(dir); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			wrong = append(wrong, err.Error())
			continue
		}
		module, _ := p.module()
		if !listed[module] {
			listed[module] = true
			if err := list(ctx, module, exports, sources); err != nil {
				return err
			}
		}
		if err := p.typecheck(dir, exports, sources); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s does not compile: %v", p.name, err))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d of %d patches are to be redone:\n%s", len(wrong), len(patches), strings.Join(wrong, "\n"))
	}
	return nil
}

// list adds the export data of all packages of a module and of those that they import, and the sources of its own.
func list(ctx context.Context, module string, exports map[string]string, sources map[string][]string) error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \" \"}}", "./...")
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = module, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	for line := range strings.Lines(stdout.String()) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		exports[f[0]] = f[1]
		if rel, err := filepath.Rel(root, f[2]); err == nil && filepath.IsLocal(rel) {
			sources[rel] = strings.Fields(f[3])
		}
	}
	return nil
}

// typecheck checks the types of each package with a file of the patch.
func (p *patch) typecheck(dir string, exports map[string]string, sources map[string][]string) error {
	done := map[string]bool{}
	for _, file := range p.files {
		pkg := filepath.Dir(file)
		if done[pkg] {
			continue
		}
		done[pkg] = true
		if !slices.Contains(sources[pkg], filepath.Base(file)) {
			return fmt.Errorf("%s is not built on this system", file)
		}
		set := token.NewFileSet()
		var files []*ast.File
		for _, name := range sources[pkg] {
			path := filepath.Join(pkg, name)
			if slices.Contains(p.files, path) {
				path = filepath.Join(dir, p.name, path)
			}
			f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
		config := types.Config{Importer: importer.ForCompiler(set, "gc", open)}
		if _, err := config.Check(pkg, set, files, nil); err != nil {
			return err
		}
	}
	return nil
}
