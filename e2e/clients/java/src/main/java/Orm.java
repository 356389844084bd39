import jakarta.persistence.*;
import java.math.BigDecimal;
import java.sql.DriverManager;
import java.time.Instant;
import java.time.LocalDate;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

/** Hibernate: a schema of its own, relations, queries, locks; the schema is validated and updated. */
public final class Orm {
    enum Colour { RED, GREEN }

    @Entity(name = "Owner")
    @Table(name = "owner", uniqueConstraints = @UniqueConstraint(name = "owner_email", columnNames = "email"))
    static class Owner {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(nullable = false, length = 80) String email;
        LocalDate born;
        @Version int version;
        @OneToMany(mappedBy = "owner", cascade = CascadeType.ALL, orphanRemoval = true) @OrderBy("id") List<Boat> boats = new ArrayList<>();
    }

    @Entity(name = "Boat")
    @Table(name = "boat", indexes = @Index(name = "boat_colour", columnList = "colour, name"))
    static class Boat {
        @Id @GeneratedValue(strategy = GenerationType.TABLE) Long id;
        String name;
        @Enumerated(EnumType.STRING) Colour colour;
        @Column(precision = 12, scale = 2) BigDecimal price;
        @Lob String story;
        @Lob byte[] picture;
        UUID serial = UUID.randomUUID();
        Instant made = Instant.now().truncatedTo(ChronoUnit.MICROS);
        boolean afloat = true;
        @ManyToOne(fetch = FetchType.LAZY, optional = false) @JoinColumn(foreignKey = @ForeignKey(name = "boat_owner")) Owner owner;
        @ManyToMany List<Harbour> harbours = new ArrayList<>();
        @ElementCollection List<String> nicknames = new ArrayList<>();
    }

    @Entity(name = "Harbour")
    static class Harbour {
        @Id @GeneratedValue Integer id;
        String name;
    }

    private static Configuration configuration(String mode) {
        Configuration c = new Configuration().addAnnotatedClass(Owner.class).addAnnotatedClass(Boat.class).addAnnotatedClass(Harbour.class);
        c.setProperty("hibernate.connection.url", "jdbc:mysql://" + Check.HOST + ":" + Check.PORT + "/hibernate");
        c.setProperty("hibernate.connection.username", Check.USER);
        c.setProperty("hibernate.connection.password", Check.PASSWORD);
        c.setProperty("hibernate.hbm2ddl.auto", mode);
        c.setProperty("hibernate.hbm2ddl.halt_on_error", "true");
        c.setProperty("hibernate.jdbc.batch_size", "20");
        c.setProperty("hibernate.show_sql", System.getenv("TRIREME_LOG") != null);
        return c;
    }

    private static SessionFactory factory;

    public static void main(String[] args) {
        java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.SEVERE);
        Check.run("creates", () -> {
            try (var c = DriverManager.getConnection("jdbc:mysql://" + Check.HOST + ":" + Check.PORT + "/", Check.USER, Check.PASSWORD); var s = c.createStatement()) {
                s.execute("DROP DATABASE IF EXISTS hibernate");
                s.execute("CREATE DATABASE hibernate");
            }
            configuration("create-only").buildSessionFactory().close();
        });
        Check.run("validates", () -> configuration("validate").buildSessionFactory().close());
        Check.run("updates the schema", () -> configuration("update").buildSessionFactory().close());
        Check.run("opens", () -> factory = configuration("create-drop").buildSessionFactory());
        Check.run("inserts", Orm::inserts);
        Check.run("queries", Orm::queries);
        Check.run("windows", Orm::windows);
        Check.run("changes", Orm::changes);
        Check.run("drops", () -> factory.close());
        Check.end();
    }

    private static void inserts() {
        factory.inTransaction(s -> {
            List<Harbour> harbours = new ArrayList<>();
            for (String name : List.of("Piraeus", "Delos", "Samos")) {
                Harbour h = new Harbour();
                h.name = name;
                s.persist(h);
                harbours.add(h);
            }
            for (int i = 0; i < 5; i++) {
                Owner o = new Owner();
                o.email = "o" + i + "@example.com";
                o.born = LocalDate.of(1990 + i, 1, 1);
                for (int k = 0; k < 3; k++) {
                    Boat b = new Boat();
                    b.name = "boat " + i + k;
                    b.colour = Colour.values()[k % 2];
                    b.price = new BigDecimal(100 * i + k).setScale(2);
                    b.story = "ż".repeat(1000);
                    b.picture = new byte[] {(byte) k, 0, -1};
                    b.owner = o;
                    b.harbours.addAll(harbours.subList(0, k));
                    b.nicknames.add("nick" + k);
                    o.boats.add(b);
                }
                s.persist(o);
            }
        });
    }

    private static void queries() {
        Session s = factory.openSession();
        try (s) {
            Boat b = s.createQuery("from Boat b join fetch b.owner left join fetch b.harbours where b.name = :n", Boat.class).setParameter("n", "boat 42").getSingleResult();
            Check.equal(List.of("402.00", "o4@example.com", 2, 1000), List.of(b.price.toString(), b.owner.email, b.harbours.size(), b.story.length()), "boat");
            Check.equal(List.of("nick2"), List.copyOf(b.nicknames), "collection");
            UUID serial = b.serial;
            Instant made = b.made;
            s.clear();
            b = s.createQuery("from Boat b where b.serial = :u and b.made = :m and b.colour = :c", Boat.class).setParameter("u", serial).setParameter("m", made)
                    .setParameter("c", Colour.RED).getSingleResult();
            Check.equal("boat 42", b.name, "by UUID and time");
            List<Object[]> sums = s.createQuery("select o.email, sum(b.price), count(distinct b.colour) from Owner o left join o.boats b group by o.email having sum(b.price) > 400"
                    + " order by sum(b.price) desc", Object[].class).setMaxResults(2).setFirstResult(1).list();
            Check.equal("o3@example.com 903.00 2", sums.get(0)[0] + " " + sums.get(0)[1] + " " + sums.get(0)[2], "sums");
            Check.equal(2, sums.size(), "limit");
            Check.equal(5L, s.createQuery("select count(o) from Owner o where exists (select 1 from Boat b where b.owner = o and size(b.harbours) = 2)", Long.class).getSingleResult(), "exists");
            Check.equal(List.of("boat 00", "boat 01"), s.createQuery("select b.name from Boat b where b.owner.born < :d and b.price <= all (select max(x.price) - 1 from Boat x where x.owner = b.owner)"
                    + " order by b.name", String.class).setParameter("d", LocalDate.of(1990, 6, 1)).list(), "all");
            Check.equal(List.of("PIRAEUS"), s.createQuery("select distinct upper(h.name) from Boat b join b.harbours h where h.name like 'P%' and year(b.owner.born) between 1990 and 1992",
                    String.class).list(), "functions");
            var cb = s.getCriteriaBuilder();
            var q = cb.createQuery(Owner.class);
            var root = q.from(Owner.class);
            q.where(cb.or(cb.equal(root.get("email"), "O1@example.com"), cb.isEmpty(root.get("boats")))).orderBy(cb.asc(root.get("id")));
            Check.equal(1, s.createQuery(q).list().size(), "criteria");
        }
    }

    private static void windows() {
        factory.inSession(s -> {
            List<Object[]> rows = s.createQuery("select b.name, row_number() over (partition by b.owner.id order by b.price desc), sum(b.price) over (partition by b.owner.id order by b.price)"
                    + " from Boat b where b.owner.email = 'o4@example.com' order by b.name", Object[].class).list();
            Check.equal("[boat 40 3 400.00, boat 41 2 801.00, boat 42 1 1203.00]", rows.stream().map(r -> r[0] + " " + r[1] + " " + r[2]).toList().toString(), "windows");
        });
    }

    private static void changes() {
        factory.inTransaction(s -> {
            Owner o = s.find(Owner.class, 1L, LockModeType.PESSIMISTIC_WRITE);
            o.boats.remove(0);
            o.boats.get(0).name = "renamed";
            o.boats.get(0).harbours.clear();
            o.email = "new@example.com";
        });
        factory.inTransaction(s -> {
            Check.equal(1, s.find(Owner.class, 1L).version, "version");
            Check.equal(10, s.createMutationQuery("update Boat b set b.price = b.price + 1 where b.colour = :c").setParameter("c", Colour.RED).executeUpdate()
                    + s.createMutationQuery("delete from Boat b where b.id < 0").executeUpdate() + 1, "updates");
        });
        try {
            factory.inTransaction(s -> {
                Owner o = new Owner();
                o.email = "NEW@example.com";
                s.persist(o);
            });
            throw new AssertionError("a duplicate was taken");
        } catch (org.hibernate.exception.ConstraintViolationException e) {
            Check.equal(1062, e.getErrorCode(), e.getMessage());
            Check.equal("owner.owner_email", e.getConstraintName(), "constraint");
        }
        try (Session a = factory.openSession()) {
            a.beginTransaction();
            Owner mine = a.find(Owner.class, 2L);
            factory.inTransaction(s -> s.find(Owner.class, 2L).email = "theirs@example.com");
            mine.email = "mine@example.com";
            a.getTransaction().commit();
            throw new AssertionError("an update was lost");
        } catch (OptimisticLockException e) {
            // as it has to be
        }
        factory.inTransaction(s -> s.remove(s.find(Owner.class, 3L)));
        factory.inSession(s -> Check.equal(11L, s.createQuery("select count(*) from Boat", Long.class).getSingleResult(), "boats"));
    }
}
