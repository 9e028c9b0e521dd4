package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// DEFECTS.md names the tests that hold what has gone wrong elsewhere.
func TestEveryNamedTestIsThere(t *testing.T) {
	table, err := os.ReadFile("DEFECTS.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`([a-z]+\\.Test[A-Za-z0-9]+)`").FindAllSubmatch(table, -1)
	require.NotEmpty(t, named)
	there := testsOf(t, "..")
	for _, name := range named {
		require.True(t, there[string(name[1])], "%s is in DEFECTS.md and nowhere else", name[1])
	}
	for row := range strings.Lines(string(table)) {
		if strings.HasPrefix(row, "| ") && !strings.HasPrefix(row, "| whose") {
			require.Regexp(t, "`[a-z]+\\.Test", row, "a row without a test")
		}
	}
}

// testsOf returns the tests below a directory, as package.Name, where package is what an external package of tests
// tests: reconnect for the packages in conntests.
func testsOf(t *testing.T, root string) map[string]bool {
	there, set := map[string]bool{}, token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := strings.TrimSuffix(f.Name.Name, "_test")
		if strings.Contains(filepath.ToSlash(path), "/conntests/") {
			pkg = "reconnect"
		}
		for _, decl := range f.Decls {
			if function, ok := decl.(*ast.FuncDecl); ok && function.Recv == nil {
				there[pkg+"."+function.Name.Name] = true
			}
		}
		return nil
	}))
	return there
}
