//go:build !js

package recipes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recipe is one file that can be read as a whole, and whose lines are not packed to make it so. A tab
// counts as 4 columns.
func TestARecipeIsShort(t *testing.T) {
	files, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.LessOrEqual(t, strings.Count(string(text), "\n"), 140, file)
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(strings.ReplaceAll(line, "\t", "    "), "\n")
			require.LessOrEqual(t, len(line), 120, "%s: %s", file, line)
		}
	}
}

// copied are functions that several recipes have.
var copied = []string{"apply", "book.change", "lines", "must", "output"}

// A recipe is one file that users copy, so it imports nothing from another. What it has in common with
// others is the same text.
func TestCopiesAreEqual(t *testing.T) {
	files, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	texts, counts := map[string]string{}, map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		tree, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range tree.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !slices.Contains(copied, nameOf(f)) {
				continue
			}
			begin := f.Pos()
			if f.Doc != nil {
				begin = f.Doc.Pos()
			}
			name, body := nameOf(f), string(text[begin-tree.FileStart:f.End()-tree.FileStart])
			if counts[name]++; counts[name] == 1 {
				texts[name] = body
			}
			require.Equal(t, texts[name], body, file)
		}
	}
	for _, name := range copied {
		require.Greater(t, counts[name], 1, name)
	}
}

// nameOf returns the name of a function, or TYPE.NAME for a method.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	name, _ := receiver.(*ast.Ident)
	return name.Name + "." + f.Name.Name
}
