"""SQLAlchemy: a schema of its own with relations, queries, reflection."""

import datetime
import decimal
import enum

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import mysql

from check import HOST, PASSWORD, PORT, USER, equal, raises, run


def engine(schema=None, **more):
    return sa.create_engine(sa.URL.create("mysql+pymysql", USER, PASSWORD, HOST, PORT, schema), **more)


class Base(orm.DeclarativeBase):
    pass


class Kind(enum.Enum):
    book = 1
    film = 2


tagged = sa.Table("tagged", Base.metadata, sa.Column("work", sa.ForeignKey("work.id", ondelete="CASCADE"), primary_key=True),
                  sa.Column("tag", sa.ForeignKey("tag.id"), primary_key=True))


class Author(Base):
    __tablename__ = "author"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(50), unique=True)
    born: orm.Mapped[datetime.date | None]
    works: orm.Mapped[list["Work"]] = orm.relationship(back_populates="author", cascade="all, delete-orphan", order_by="Work.id")


class Work(Base):
    __tablename__ = "work"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    title: orm.Mapped[str] = orm.mapped_column(sa.String(100), index=True)
    kind: orm.Mapped[Kind]
    price: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(10, 2), server_default="0.00")
    sold: orm.Mapped[bool] = orm.mapped_column(default=False)
    notes: orm.Mapped[dict | None] = orm.mapped_column(sa.JSON)
    blob: orm.Mapped[bytes | None] = orm.mapped_column(sa.LargeBinary)
    made: orm.Mapped[datetime.datetime] = orm.mapped_column(mysql.DATETIME(fsp=6), server_default=sa.func.current_timestamp(6))
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("author.id", ondelete="CASCADE"))
    doubled: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(12, 2), sa.Computed("price * 2", persisted=True))
    author: orm.Mapped[Author] = orm.relationship(back_populates="works")
    tags: orm.Mapped[list["Tag"]] = orm.relationship(secondary=tagged, back_populates="works")
    __table_args__ = (sa.CheckConstraint("price >= 0", name="price_positive"), sa.Index("kind_title", "kind", "title"))


class Tag(Base):
    __tablename__ = "tag"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(20), unique=True, comment="as shown")
    works: orm.Mapped[list[Work]] = orm.relationship(secondary=tagged, back_populates="tags")


def creates():
    with engine().begin() as c:
        c.execute(sa.text("DROP DATABASE IF EXISTS orm"))
        c.execute(sa.text("CREATE DATABASE orm"))
    e = engine("orm")
    Base.metadata.create_all(e)
    Base.metadata.create_all(e)  # what is there is left alone


def inserts():
    with orm.Session(engine("orm")) as s, s.begin():
        tags = {n: Tag(name=n) for n in ("sea", "war")}
        for i, name in enumerate(("Homer", "Sappho", "Hesiod")):
            a = Author(name=name, born=datetime.date(1000 + i, 1, 1))
            for k in range(3):
                a.works.append(Work(title=f"{name} {k}", kind=Kind.book if k < 2 else Kind.film, price=decimal.Decimal(k) + decimal.Decimal("0.25"),
                                    notes={"k": [k, None, "ż"]}, blob=bytes([k, 0, 255]), tags=list(tags.values())[:k]))
            s.add(a)


def queries():
    with orm.Session(engine("orm")) as s:
        works = s.scalars(sa.select(Work).join(Work.author).where(Author.name == "Homer", Work.kind == Kind.book).order_by(Work.id)).all()
        equal([(w.title, w.price, w.doubled, w.notes, w.blob, w.sold) for w in works],
              [(f"Homer {k}", decimal.Decimal(k) + decimal.Decimal("0.25"), 2 * k + decimal.Decimal("0.5"), {"k": [k, None, "ż"]}, bytes([k, 0, 255]), False)
               for k in range(2)])
        for load in (orm.joinedload, orm.selectinload, orm.subqueryload):
            s.expunge_all()
            authors = s.scalars(sa.select(Author).options(load(Author.works).options(load(Work.tags))).order_by(Author.id)).unique().all()
            equal([[sorted(t.name for t in w.tags) for w in a.works] for a in authors], [[[], ["sea"], ["sea", "war"]]] * 3, load.__name__)
        sums = s.execute(sa.select(Author.name, sa.func.sum(Work.price), sa.func.count(Work.id.distinct())).outerjoin(Author.works)
                         .group_by(Author.id).having(sa.func.count() > 1).order_by(Author.name.desc())).all()
        equal([tuple(r) for r in sums], [(n, decimal.Decimal("3.75"), 3) for n in ("Sappho", "Homer", "Hesiod")])
        dear = sa.select(sa.func.max(Work.price)).where(Work.author_id == Author.id).scalar_subquery()
        equal(s.scalars(sa.select(Author.name).where(dear > 2, Author.works.any(Work.tags.any(Tag.name == "war"))).order_by(Author.id).limit(2).offset(1)).all(),
              ["Sappho", "Hesiod"])
        ranked = sa.select(Work.title, sa.case((Work.price > 1, "dear"), else_="cheap")).where(Work.title.like("Sappho%"))
        both = ranked.union_all(sa.select(Tag.name, sa.literal("tag"))).order_by(sa.text("1"))
        equal([tuple(r) for r in s.execute(both)],
              [("Sappho 0", "cheap"), ("Sappho 1", "dear"), ("Sappho 2", "dear"), ("sea", "tag"), ("war", "tag")])
        equal(s.execute(sa.select(Work.notes["k"][2].as_string(), sa.func.json_length(Work.notes["k"])).limit(1)).one(), ("ż", 3))
        tree = sa.select(sa.literal(1).label("n")).cte("tree", recursive=True)
        tree = tree.union_all(sa.select(tree.c.n + 1).where(tree.c.n < 5))
        equal(s.scalars(sa.select(tree.c.n)).all(), [1, 2, 3, 4, 5])


def windows():
    with orm.Session(engine("orm")) as s:
        rank = sa.func.row_number().over(partition_by=Work.author_id, order_by=Work.price.desc())
        running = sa.func.sum(Work.price).over(partition_by=Work.author_id, order_by=Work.price, rows=(None, 0))
        before = sa.func.lag(Work.title).over(partition_by=Work.author_id, order_by=Work.id)
        rows = s.execute(sa.select(Work.title, rank, running, before).order_by(Work.id).limit(3)).all()
        equal([tuple(r) for r in rows], [("Homer 0", 3, decimal.Decimal("0.25"), None), ("Homer 1", 2, decimal.Decimal("1.50"), "Homer 0"),
                                         ("Homer 2", 1, decimal.Decimal("3.75"), "Homer 1")])


def updates():
    with orm.Session(engine("orm")) as s:
        homer = s.scalars(sa.select(Author).where(Author.name == "Homer").with_for_update()).one()
        homer.works[0].title = "Iliad"
        homer.works[0].tags = s.scalars(sa.select(Tag)).all()
        homer.works.pop()
        s.commit()
        equal([(w.title, len(w.tags)) for w in homer.works], [("Iliad", 2), ("Homer 1", 1)])
        equal(s.execute(sa.update(Work).where(Work.price < 1).values(price=Work.price + 1, sold=True)).rowcount, 3)
        equal(s.execute(sa.delete(Work).where(Work.kind == Kind.film)).rowcount, 2)
        s.rollback()
        with s.begin_nested() as nested:
            s.add(Tag(name="mine"))
            s.flush()
            nested.rollback()
        up = mysql.insert(Tag).values(name="sea")
        s.execute(up.on_duplicate_key_update(name=up.inserted.name))
        s.commit()
        equal(s.scalar(sa.select(sa.func.count()).select_from(Tag)), 2)
        raises(1062, lambda: (s.add(Tag(name="SEA")), s.flush()))
        s.rollback()
        raises(1452, s.execute, sa.insert(Work).values(title="x", kind=Kind.book, author_id=999, price=1))
        s.rollback()
        raises(3819, s.execute, sa.insert(Work).values(title="x", kind=Kind.book, author_id=homer.id, price=-1))
        s.rollback()
        s.delete(s.get(Author, homer.id))
        s.commit()
        equal(s.scalar(sa.select(sa.func.count()).select_from(Work)), 6)


def reflects():
    i = sa.inspect(engine("orm"))
    equal(sorted(i.get_table_names()), ["author", "tag", "tagged", "work"])
    equal("orm" in i.get_schema_names(), True)
    columns = {c["name"]: c for c in i.get_columns("work")}
    equal({n: (str(c["type"]), c["nullable"]) for n, c in columns.items()},
          {"id": ("INTEGER", False), "title": ("VARCHAR(100)", False), "kind": ("ENUM", False), "price": ("DECIMAL(10, 2)", False),
           "sold": ("TINYINT", False), "notes": ("JSON", True), "blob": ("BLOB", True), "made": ("DATETIME", False), "author_id": ("INTEGER", False),
           "doubled": ("DECIMAL(12, 2)", False)})
    equal(columns["kind"]["type"].enums, ["book", "film"])
    equal(columns["price"]["default"], "'0.00'")
    equal(columns["made"]["default"].lower(), "(now(6))")
    equal(columns["doubled"]["computed"]["persisted"], True)
    equal(columns["id"]["autoincrement"], True)
    equal(i.get_pk_constraint("tagged")["constrained_columns"], ["work", "tag"])
    equal([(f["constrained_columns"], f["referred_table"], f["referred_columns"], f["options"]) for f in i.get_foreign_keys("work")],
          [(["author_id"], "author", ["id"], {"ondelete": "CASCADE"})])
    equal({x["name"]: (x["column_names"], x["unique"]) for x in i.get_indexes("work")},
          {"author_id": (["author_id"], False), "ix_work_title": (["title"], False), "kind_title": (["kind", "title"], False)})
    equal([x["name"] for x in i.get_check_constraints("work")], ["price_positive"])
    equal(i.get_columns("tag")[1]["comment"], "as shown")
    equal([u["column_names"] for u in i.get_unique_constraints("tag")], [["name"]])
    equal(i.has_table("nowhere"), False)
    reflected = sa.MetaData()
    reflected.reflect(engine("orm"))
    equal(sorted(reflected.tables), ["author", "tag", "tagged", "work"])


def isolates():
    with engine("orm", isolation_level="REPEATABLE READ").connect() as c:
        equal(c.get_isolation_level(), "REPEATABLE READ")
    with engine("orm").connect().execution_options(isolation_level="READ COMMITTED") as c:
        equal(c.get_isolation_level(), "READ COMMITTED")
        c.execution_options(stream_results=True)
        equal(len(c.execute(sa.text("SELECT * FROM tag")).all()), 2)


def drops():
    e = engine("orm")
    Base.metadata.drop_all(e)
    equal(sa.inspect(e).get_table_names(), [])


run(creates, inserts, queries, windows, updates, reflects, isolates, drops)
