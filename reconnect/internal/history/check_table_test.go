package history

import (
	"go/ast"
	"go/parser"
	syntax "go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Invariants lists each invariant that is declared, so that a run of many histories fails if one is never at stake.
func TestInvariantsAreThoseDeclared(t *testing.T) {
	var all []string
	for _, names := range declared(t) {
		all = append(all, names...)
	}
	require.ElementsMatch(t, all, listed(t))
}

// The table in check_due_test.go names declared invariants, and each one of the files that check what is due.
func TestTableNamesInvariants(t *testing.T) {
	text, err := os.ReadFile("check_due_test.go")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "// What must happen, and by when.")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "// drawDue")
	var named []string
	lastColumn := regexp.MustCompile(`(?m)^//\t.*  (\w+(?:, \w+)*),?$`)
	for _, row := range lastColumn.FindAllStringSubmatch(table, -1) {
		named = append(named, strings.Split(row[1], ", ")...)
	}
	rows := strings.Count(table, "//\t")
	require.Len(t, lastColumn.FindAllString(table, -1), rows)
	require.Subset(t, listed(t), named)
	names := declared(t)
	files := []string{
		"check_due_test.go", "world_rotated_test.go", "world_limits_test.go", "world_resets_test.go",
		"world_toolarge_test.go",
	}
	for _, file := range files {
		require.Subset(t, named, names[file], file)
	}
}

// declared returns the names of the constants that are an Invariant, by file.
func declared(t *testing.T) map[string][]string {
	all := make(map[string][]string)
	for name, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Invariant" {
				all[name] = append(all[name], spec.Names[0].Name)
			}
			return true
		})
	}
	return all
}

// listed returns the names in Invariants.
func listed(t *testing.T) (names []string) {
	decls := sources(t)["check_invariant_test.go"].Decls
	i := slices.IndexFunc(decls, func(d ast.Decl) bool {
		g, ok := d.(*ast.GenDecl)
		return ok && g.Tok == syntax.VAR
	})
	require.GreaterOrEqual(t, i, 0)
	ast.Inspect(decls[i], func(n ast.Node) bool {
		if list, ok := n.(*ast.CompositeLit); ok {
			for _, e := range list.Elts {
				names = append(names, e.(*ast.Ident).Name)
			}
		}
		return true
	})
	return names
}

// sources returns the syntax of the files of this package.
func sources(t *testing.T) map[string]*ast.File {
	files := make(map[string]*ast.File)
	paths, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, path := range paths {
		files[path] = source(t, path)
	}
	return files
}

// source returns the syntax of a file.
func source(t *testing.T, path string) *ast.File {
	file, err := parser.ParseFile(syntax.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	return file
}
