//go:build !js

// Package site serves the page of examples/browser, and builds its program.
//
//	program, err := site.Build(ctx)
//	v := venue.New(nil)
//	defer v.Close()
//	http.Serve(listener, site.New(program, v))
package site

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is what the page runs: the program in the directory page, and the script of the Go
// tool that starts it, which must be of the same version.
type Program struct {
	WASM   []byte
	GZIP   []byte // WASM, compressed
	Script []byte // wasm_exec.js
}

// Build builds the program with the go tool. It must be called in a directory of a module that
// can import this package. It takes seconds, or a minute the first time. The error says what to
// do about it.
func Build(ctx context.Context) (*Program, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, fmt.Errorf("the page is built by the go tool, which is not in the PATH: %w", err)
	}
	dir, err := os.MkdirTemp("", "redial-page")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "page.wasm")
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", file, "github.com/redial-go/redial/examples/browser/page")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", build, err, bytes.TrimSpace(out))
	}
	p := new(Program)
	if p.WASM, err = os.ReadFile(file); err != nil {
		return nil, err
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	if p.Script, err = os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")); err != nil {
		return nil, fmt.Errorf("the script that starts a js/wasm program: %w", err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err = w.Write(p.WASM); err == nil {
		err = w.Close()
	}
	p.GZIP = packed.Bytes()
	return p, err
}
