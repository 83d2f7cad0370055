package work

import "strings"

// sqlSystems are the systems of databases whose type of work the agent calls sql, by
// OpenTelemetry's present and older names.
var sqlSystems = func() map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(`
		actian.ingres adabas aws.redshift cache clickhouse cloudscape cockroachdb coldfusion db2
		derby edb filemaker firebird firebirdsql firstsql h2 h2database hanadb hsqldb ibm.db2
		ibm.informix ibm.netezza informix ingres instantdb interbase intersystems.cache mariadb
		maxdb microsoft.sql_server mssql mysql netezza oracle oracle.db other_sql pervasive
		pointbase postgresql progress redshift sap.hana sap.maxdb softwareag.adabas sqlite sybase
		teradata vertica`) {
		set[name] = true
	}
	return set
}()

// databaseType is the type of work of a call to a database.
func databaseType(system string) string {
	if sqlSystems[system] {
		return "sql"
	}
	switch system {
	case "cassandra", "redis", "memcached", "mongodb", "elasticsearch", "opensearch":
		return system
	}
	return "db"
}
