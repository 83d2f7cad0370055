// Package mask replaces the identifiers in a resource or an endpoint by placeholders: of
// GET /users/17 it makes GET /users/{id}. So spans whose name would be lost, because a budget
// is used up, keep most of it.
//
// # What is an identifier
//
// What a piece of text looks like decides, and nothing else: a number, a UUID, hexadecimal
// digits, a random token, a date, an e-mail or network address, the value of a query, a
// literal of an SQL statement. Each kind has a placeholder of its own, so /items/{id} and
// /items/{uuid} stay two. Words are no identifiers, whatever they say: nothing tells a user's
// name in /users/alice from the route /users/export. Names that programmers write stay words, however
// many numbers they contain: createOAuth2ClientV1, UTF8ToUTF16, logo@2x.png.
//
// What stands around identifiers is kept byte by byte, so two texts have one mask only if
// they differ in nothing but identifiers of the same kinds.
//
// # Properties
//
// A mask is a function of the text: it remembers nothing, and is safe for any goroutine. It is
// idempotent: a text with a placeholder in it is a mask already, and a statement without
// literals has none to replace. The text is valid UTF-8, as labels are once they are mended,
// and so is the mask. The work is linear in the text's bytes. Nothing is allocated but what
// the caller's buffer needs to grow.
//
// # SQL
//
// The lexer is our own because DataDog/go-sqllexer can't keep these properties. It allocates
// a lexer for each statement and can't use it again. It has to be told the database: where it
// isn't, it takes a backslash for an escape in every literal, so that 'C:\' swallows what
// follows and later literals show, and it cuts the table 2024_orders into a literal and a name,
// which makes one mask of two tables.
package mask
