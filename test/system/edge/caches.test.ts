import { startNginx, startVarnish } from "../../support/programs/edge.ts"
import { cacheSuite } from "./suite.ts"

cacheSuite({ name: "nginx", start: startNginx })
cacheSuite({ name: "Varnish", start: startVarnish })
